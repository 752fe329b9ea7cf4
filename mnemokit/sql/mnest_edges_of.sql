-- The lent edges.
SELECT edge_no, src_executor, src_version, dst_executor, dst_version, ts_acted
FROM edges
SEMI JOIN lent_edges USING (edge_no)
ORDER BY edge_no
