-- The same, of the lent edges alone.
SELECT count(*) AS n, count(*) FILTER (state = 'proto') AS protos
FROM mnest_records
SEMI JOIN lent_edges USING (edge_no)
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now
