-- First and last timed passing that stay in the store.
SELECT min(event.ts), max(event.ts)
FROM edge_events AS event
ANTI JOIN gone ON gone.turn_no = event.turn_no
WHERE event.kind = 'passing' AND NOT event.untimed;
