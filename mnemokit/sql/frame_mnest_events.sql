SELECT *
FROM mnest_events
WHERE $at IS NULL OR ts <= $at
ORDER BY ts, seq, kind;
