-- Every life that the lent edges ever had.
SELECT mnest_no, mnest_id, edge_no, record_no
FROM mnest_lives
SEMI JOIN lent_edges USING (edge_no)
