-- Edges of a pair, and when somebody last acted on them, in microseconds.
SELECT edge_no, dst_version, epoch_us(ts_acted)
FROM edges
WHERE src_executor = ? AND src_version = ? AND dst_executor = ?
