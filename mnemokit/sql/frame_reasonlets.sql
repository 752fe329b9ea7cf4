SELECT *
FROM reasonlets
WHERE $at IS NULL OR ts_captured <= $at
ORDER BY ts_captured, seq;
