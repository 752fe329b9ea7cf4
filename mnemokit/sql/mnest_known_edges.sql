-- Which of the lent keys have an edge number already.
SELECT lent.key_no, edge.edge_no
FROM lent_keys AS lent
JOIN edges AS edge
  ON edge.src_executor = lent.src_executor
 AND edge.src_version = lent.src_version
 AND edge.dst_executor = lent.dst_executor
 AND edge.dst_version IS NOT DISTINCT FROM lent.dst_version
