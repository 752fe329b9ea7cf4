DELETE FROM mnest_lives
WHERE mnest_no IN (
    SELECT lent.mnest_no
    FROM lent_lives AS lent
    ANTI JOIN edge_events AS event ON event.mnest_no = lent.mnest_no
)
