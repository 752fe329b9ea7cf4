-- Edges that go on from the lent paths: from the executor and version that a path has reached (any version at its
-- start), in these states, heavy enough.
SELECT path.path_no, edge.mnest_id, edge.src_version, edge.dst_executor, edge.dst_version, edge.weight
FROM mnests AS edge
JOIN lent_paths AS path
  ON edge.src_executor = path.src_executor
WHERE (path.any_version OR edge.src_version = path.src_version)
  AND edge.weight > path.min_weight
  AND list_contains($states, edge.state)
