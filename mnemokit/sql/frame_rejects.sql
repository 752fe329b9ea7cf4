SELECT *
FROM rejects
WHERE $at IS NULL OR ts_read <= $at
ORDER BY ts_read, source, file, place;
