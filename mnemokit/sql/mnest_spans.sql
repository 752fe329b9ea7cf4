-- When the history of each lent edge begins and ends.
SELECT edge_no, min(ts) AS ts_begin, max(ts) AS ts_end
FROM edge_events
SEMI JOIN lent_edges USING (edge_no)
GROUP BY edge_no
