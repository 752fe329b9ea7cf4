SELECT *
FROM feedback
WHERE $at IS NULL OR ts_given <= $at
ORDER BY ts_given, seq;
