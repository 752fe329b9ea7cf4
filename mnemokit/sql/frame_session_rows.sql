SELECT *
FROM session_rows
WHERE $at IS NULL OR ts_noted <= $at
ORDER BY ts_noted, session_id, user_id;
