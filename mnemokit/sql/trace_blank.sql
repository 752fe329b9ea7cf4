-- Everything that history knows of removed traces, and what undone writes of the person had made of kept ones.
UPDATE change_traces
SET counts = FALSE, forgotten = TRUE, brain_id = NULL, type = NULL, scope = NULL, content = NULL, content_hash = NULL,
    tags = NULL, metadata = NULL, parents = NULL, ts_created = NULL, ts_updated = NULL, untimed = NULL, trace_seq = NULL
WHERE trace_id IN (SELECT trace_id FROM doomed)
   OR (NOT counts AND change_seq IN (SELECT seq FROM about));
