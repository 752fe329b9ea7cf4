-- Ids of the file whose passings went to a record that the store had before.
SELECT lent.mnest_id, min(taker.mnest_id) AS other
FROM lent_lives AS lent
JOIN mnest_lives AS life ON life.mnest_no = lent.mnest_no
JOIN mnests AS taker ON taker.edge_no = life.edge_no
ANTI JOIN edge_events AS event ON event.mnest_no = lent.mnest_no
GROUP BY lent.mnest_id
