SELECT query, tool, args_shape, sum(uses)::BIGINT AS uses, sum(ok)::BIGINT AS ok, sum(fail)::BIGINT AS fail,
       min(ts_first) AS ts_first, max(ts_last) AS ts_last
FROM query_uses
WHERE $at IS NULL OR ts_last <= $at
GROUP BY query, tool, args_shape
ORDER BY query, tool, args_shape;
