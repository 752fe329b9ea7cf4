INSERT INTO change_traces (change_seq, trace_id, move, action, counts, forgotten, present, brain_id, type, scope,
    content, content_hash, tags, metadata, parents, ts_created, ts_updated, untimed, trace_seq, ts, seq)
SELECT $seq, trace_id, $move, action, TRUE, FALSE, brain_id IS NOT NULL, brain_id, type, scope,
    content, content_hash, tags, metadata, parents, ts_created, ts_updated, untimed,
    CASE WHEN brain_id IS NOT NULL THEN coalesce(seq, $first + place) END, ts, $first + place
FROM effects
ORDER BY place;
