-- Untimed turns have an order but no instant: they are always there.
SELECT *
FROM turns
WHERE $at IS NULL OR ts IS NULL OR ts <= $at
ORDER BY source, session_id, step, turn_no;
