-- Records that a version superseded for the sake of the lent edges: the same executors, and of one of them the version
-- that the event names in place of the one before.
SELECT life.mnest_id, life.edge_no
FROM edge_events AS event
JOIN mnest_lives AS life ON life.mnest_no = event.mnest_no
JOIN edges AS old ON old.edge_no = event.edge_no
JOIN lent_edges AS lent USING (src_executor, dst_executor)
WHERE event.kind = 'transition' AND event.new_state = 'superseded' AND event.weight IS NOT NULL
  AND ($at IS NULL OR event.ts <= $at)
  AND (
      (json_extract_string(event.detail, '$.executor') = lent.src_executor
       AND json_extract_string(event.detail, '$.superseded_by') = lent.src_version
       AND old.dst_version IS NOT DISTINCT FROM lent.dst_version)
      OR
      (json_extract_string(event.detail, '$.executor') = lent.dst_executor
       AND json_extract_string(event.detail, '$.superseded_by') = lent.dst_version
       AND old.src_version = lent.src_version)
  )
