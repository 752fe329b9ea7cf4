-- How often each edge was passed over, and in how many logged sessions, after one instant and up to another.
SELECT edge.src_executor, CASE WHEN NOT $collapse THEN edge.src_version END AS src_version, edge.dst_executor,
       CASE WHEN NOT $collapse THEN edge.dst_version END AS dst_version, count(*) AS n,
       count(DISTINCT (turn.source, turn.session_id)) FILTER (turn.turn_no IS NOT NULL) AS sessions
FROM edge_events AS event
JOIN edges AS edge ON edge.edge_no = event.edge_no
LEFT JOIN turns AS turn ON turn.turn_no = event.turn_no
WHERE event.kind = 'passing'
  AND ($after IS NULL OR event.ts > $after)
  AND ($until IS NULL OR event.ts <= $until)
GROUP BY ALL
ORDER BY ALL
