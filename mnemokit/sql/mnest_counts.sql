-- How often each edge was passed over, and in how many logged sessions, after one instant and up to another. What passed
-- to a proto counts for the version that it was promoted to by then.
WITH promoted AS (
    SELECT mnest_no, min(json_extract_string(detail, '$.dst_version')) AS dst_version
    FROM edge_events
    WHERE kind = 'promote' AND weight IS NOT NULL AND ($until IS NULL OR ts <= $until)
    GROUP BY mnest_no
)
SELECT edge.src_executor, CASE WHEN NOT $collapse THEN edge.src_version END AS src_version, edge.dst_executor,
       CASE WHEN NOT $collapse THEN coalesce(promoted.dst_version, edge.dst_version) END AS dst_version, count(*) AS n,
       count(DISTINCT (turn.source, turn.session_id)) FILTER (turn.turn_no IS NOT NULL) AS sessions
FROM edge_events AS event
JOIN edges AS edge ON edge.edge_no = event.edge_no
LEFT JOIN promoted ON promoted.mnest_no = event.mnest_no
LEFT JOIN turns AS turn ON turn.turn_no = event.turn_no
WHERE event.kind = 'passing'
  AND ($after IS NULL OR event.ts > $after)
  AND ($until IS NULL OR event.ts <= $until)
GROUP BY ALL
ORDER BY ALL
