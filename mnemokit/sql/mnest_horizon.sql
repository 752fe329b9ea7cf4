-- How far the edges have lived: the newest ager, the newest act of somebody's, the newest passing.
SELECT (SELECT max(ts_ager) FROM ager_runs) AS newest_ager,
       (SELECT max(ts_acted) FROM edges) AS newest_act,
       (SELECT max(ts_used) FROM mnest_records) AS newest_use
