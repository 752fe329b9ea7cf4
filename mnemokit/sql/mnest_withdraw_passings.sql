-- Delete the last so many passings that each lent turn made over each lent edge.
DELETE FROM edge_events
WHERE kind = 'passing' AND seq IN (
    SELECT seq
    FROM (
        SELECT event.seq, lent.times,
               row_number() OVER (PARTITION BY event.turn_no, event.edge_no ORDER BY event.seq DESC) AS from_last
        FROM edge_events AS event
        JOIN lent_gone AS lent ON lent.turn_no = event.turn_no AND lent.edge_no = event.edge_no
        WHERE event.kind = 'passing'
    )
    WHERE from_last <= times
)
