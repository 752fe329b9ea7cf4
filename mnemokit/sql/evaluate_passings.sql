-- Every stored passing with the session it was logged in, in order of time; null session where no turn tells of it.
SELECT edge.src_executor, edge.src_version, edge.dst_executor, edge.dst_version, event.ts, event.untimed,
       event.decay_lambda, turn.source, turn.session_id, event.seq
FROM edge_events AS event
JOIN edges AS edge ON edge.edge_no = event.edge_no
LEFT JOIN turns AS turn ON turn.turn_no = event.turn_no
WHERE event.kind = 'passing'
ORDER BY event.ts, event.seq;
