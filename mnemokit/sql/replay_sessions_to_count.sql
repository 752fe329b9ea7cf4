-- How many sessions of these sources got turns since a turn number?
SELECT count(*)
FROM (
    SELECT DISTINCT source, session_id
    FROM turns
    WHERE turn_no >= $first_turn_no AND list_contains($sources, source)
);
