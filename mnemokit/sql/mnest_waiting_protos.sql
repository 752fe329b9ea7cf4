-- How many protos wait for an ager. Those of the lent edges are left out.
SELECT 'proto' AS state, 0 AS since, count(*) AS n
FROM mnests
ANTI JOIN lent_edges USING (edge_no)
WHERE state = 'proto' AND NOT untimed AND ts_last < $now
