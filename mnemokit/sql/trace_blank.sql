-- Everything that history knows of removed traces, and what undone writes of the person had made of kept ones.
WITH blanked AS (
    SELECT past.seq
    FROM change_traces AS past
    JOIN doomed ON doomed.trace_id = past.trace_id
    UNION
    SELECT past.seq
    FROM change_traces AS past
    JOIN about ON about.seq = past.change_seq
    WHERE NOT past.counts
)
UPDATE change_traces
SET counts = FALSE, forgotten = TRUE, brain_id = NULL, type = NULL, scope = NULL, content = NULL, content_hash = NULL,
    tags = NULL, metadata = NULL, parents = NULL, ts_created = NULL, ts_updated = NULL, untimed = NULL, trace_seq = NULL
FROM blanked
WHERE blanked.seq = change_traces.seq;
