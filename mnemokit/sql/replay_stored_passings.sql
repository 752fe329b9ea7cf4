-- Passings that were derived from these turns before.
SELECT event.turn_no, edge.src_executor, edge.src_version, edge.dst_executor, edge.dst_version, count(*) AS times
FROM edge_events AS event
SEMI JOIN continued ON continued.turn_no = event.turn_no
JOIN edges AS edge ON edge.edge_no = event.edge_no
WHERE event.kind = 'passing'
GROUP BY ALL;
