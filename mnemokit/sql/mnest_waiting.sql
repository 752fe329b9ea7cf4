-- How many live records wait for an ager, by state and by when they were last brought up to date. Those of the lent
-- edges are left out.
SELECT state, epoch_us(ts_last) AS since, count(*) AS n
FROM mnests
ANTI JOIN lent_edges USING (edge_no)
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now
GROUP BY state, since
