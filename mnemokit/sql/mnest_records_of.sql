-- The records of the lent edges, as a fold goes on from them.
SELECT mnest_no AS life, edge_no, weight, uses, ts_first, ts_last, ts_used, decay_lambda, state, tags, desired_sig,
       untimed
FROM mnests
SEMI JOIN lent_edges USING (edge_no)
