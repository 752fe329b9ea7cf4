-- Edges, all or those from and to one executor, with the number of their pair.
SELECT edge_no, min(edge_no) OVER (PARTITION BY src_executor, src_version, dst_executor) AS pair_no,
       src_executor, src_version, dst_executor, dst_version
FROM edges
WHERE $executor IS NULL OR src_executor = $executor OR dst_executor = $executor
