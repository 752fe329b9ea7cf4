-- Who passed to whom in these sessions, from the stored facts, whatever policy derived them.
SELECT DISTINCT turn.source, turn.session_id, edge.src_executor, edge.dst_executor
FROM edge_events AS event
JOIN turns AS turn ON turn.turn_no = event.turn_no
SEMI JOIN slice ON slice.session_id = turn.session_id AND slice.source = turn.source
JOIN edges AS edge ON edge.edge_no = event.edge_no
WHERE event.kind = 'passing';
