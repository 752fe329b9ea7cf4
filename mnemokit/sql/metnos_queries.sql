-- Uses that the file counts, but for those that an earlier import of it brought.
INSERT INTO query_uses BY NAME
SELECT query, tool, args_shape, uses, ok, fail, ts_first, ts_last
FROM lent_uses
ANTI JOIN query_uses AS known USING (query, tool, args_shape, uses, ok, fail, ts_first, ts_last)
