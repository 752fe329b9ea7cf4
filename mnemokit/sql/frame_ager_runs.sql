SELECT *
FROM ager_runs
WHERE $at IS NULL OR ts_ager <= $at
ORDER BY ts_ager;
