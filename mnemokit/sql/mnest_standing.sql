-- Records as they stand, all or those from and to one executor.
SELECT *
FROM mnests
WHERE $executor IS NULL OR src_executor = $executor OR dst_executor = $executor
ORDER BY mnest_no
