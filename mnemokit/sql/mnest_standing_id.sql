-- The record that a life is in now.
SELECT record.mnest_id
FROM mnest_lives AS life
JOIN mnests AS record ON record.mnest_no = life.record_no
WHERE life.mnest_id = $mnest_id
