SELECT *
FROM recalls
WHERE $at IS NULL OR ts_recalled <= $at
ORDER BY ts_recalled, seq;
