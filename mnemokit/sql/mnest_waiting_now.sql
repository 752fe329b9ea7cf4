-- How many live records wait for an ager, and how many of them are protos.
SELECT (
    SELECT count(*) FROM mnest_records WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now
) AS n, (
    SELECT count(*) FROM mnest_records WHERE state = 'proto' AND NOT untimed AND ts_last < $now
) AS protos
