-- Which of the lent edges have a decaying record already.
SELECT edge_no
FROM mnest_records
SEMI JOIN lent_edges USING (edge_no)
WHERE state = 'decaying' OR ts_demoted IS NOT NULL
