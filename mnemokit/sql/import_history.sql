INSERT INTO change_traces (change_seq, trace_id, move, action, counts, forgotten, present, brain_id, type, scope,
    content, content_hash, tags, metadata, parents, ts_created, ts_updated, untimed, trace_seq, ts, seq)
SELECT change_seq, trace_id, 'write', action, TRUE, FALSE, TRUE, brain_id, type, scope,
    content, content_hash, tags, metadata, parents, ts_created, ts_updated, untimed, seq, ts, seq
FROM states
ORDER BY place;
