-- Which of the lent edges belong to a pair (source version and destination) that somebody acted on.
SELECT edge.edge_no
FROM edges AS edge
SEMI JOIN lent_edges ON lent_edges.edge_no = edge.edge_no
SEMI JOIN (SELECT src_executor, src_version, dst_executor FROM edges WHERE ts_acted IS NOT NULL) AS acted
    ON acted.src_executor = edge.src_executor
    AND acted.src_version = edge.src_version
    AND acted.dst_executor = edge.dst_executor
