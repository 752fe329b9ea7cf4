-- Edges that the lent turns passed over, and how often.
SELECT edge_no, count(*) AS passings
FROM edge_events
SEMI JOIN lent_turns USING (turn_no)
WHERE kind = 'passing'
GROUP BY edge_no
