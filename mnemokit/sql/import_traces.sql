INSERT INTO traces (trace_id, brain_id, type, scope, content, content_hash, tags, metadata, parents, ts_created,
    ts_updated, untimed, seq)
SELECT trace_id, brain_id, type, scope, content, content_hash, tags, metadata, parents, ts_created, ts_updated,
    untimed, seq
FROM states
ORDER BY place;
