SELECT count(*)
FROM edge_events AS event
SEMI JOIN gone ON gone.turn_no = event.turn_no
WHERE event.kind = 'passing';
