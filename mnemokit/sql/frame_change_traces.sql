SELECT change_id, trace_id, move, action, counts, forgotten, content, ts, seq
FROM change_traces
WHERE $at IS NULL OR ts <= $at
ORDER BY seq;
