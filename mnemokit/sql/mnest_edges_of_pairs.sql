-- Every edge of the pairs that the lent edges belong to. A pair is a source version and a destination, whatever its
-- version; its number is that of its first edge.
WITH lent_pairs AS (
    SELECT DISTINCT src_executor, src_version, dst_executor
    FROM edges
    SEMI JOIN lent_edges USING (edge_no)
)
SELECT edge_no,
       min(edge_no) OVER (PARTITION BY src_executor, src_version, dst_executor) AS pair_no,
       src_executor, src_version, dst_executor, dst_version, ts_acted
FROM edges
SEMI JOIN lent_pairs USING (src_executor, src_version, dst_executor)
ORDER BY edge_no
