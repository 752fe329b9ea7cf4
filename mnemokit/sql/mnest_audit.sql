-- The latest events, newest first.
SELECT *
FROM mnest_events
WHERE $at IS NULL OR ts <= $at
ORDER BY ts DESC, seq DESC, kind = 'merge' DESC, kind
LIMIT $limit
