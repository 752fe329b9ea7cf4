-- One edge, when somebody last acted on its pair, and the newest ager; always one row. Instants in microseconds.
WITH pair AS (
    SELECT edge_no, dst_version, ts_acted
    FROM edges
    WHERE src_executor = $src AND src_version = $src_version AND dst_executor = $dst
)
SELECT (SELECT edge_no FROM pair WHERE dst_version IS NOT DISTINCT FROM $dst_version) AS edge_no,
       (SELECT max(epoch_us(ts_acted)) FROM pair) AS acted,
       (SELECT max(epoch_us(ts_ager)) FROM ager_runs) AS newest
