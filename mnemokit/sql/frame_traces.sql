SELECT trace_id, brain_id, type, scope, content, tags, metadata, parents, ts_created, ts_updated, untimed
FROM traces
ORDER BY ts_created, seq;
