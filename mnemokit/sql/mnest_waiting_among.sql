-- How many live records of the lent edges wait for an ager, and how many of them are protos.
SELECT count(*) AS n, count(*) FILTER (state = 'proto') AS protos
FROM mnest_records
SEMI JOIN lent_edges USING (edge_no)
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now AND ts_demoted IS NULL
