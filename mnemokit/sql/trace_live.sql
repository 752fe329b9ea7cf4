-- Live traces, each with the instant from which it is as it is.
WITH wanted AS (
    SELECT DISTINCT unnest($trace_ids) AS trace_id
),
latest AS (
    SELECT past.trace_id, max(past.ts) AS ts
    FROM change_traces AS past
    JOIN wanted ON wanted.trace_id = past.trace_id
    WHERE past.counts AND past.action <> 'resolved'
    GROUP BY past.trace_id
)
SELECT trace.trace_id, trace.brain_id, trace.type, trace.scope, trace.content, trace.content_hash, trace.tags,
       trace.metadata, trace.parents, trace.ts_created, trace.ts_updated, trace.untimed, trace.seq,
       coalesce(latest.ts, trace.ts_updated) AS ts_state
FROM traces AS trace
JOIN wanted ON wanted.trace_id = trace.trace_id
LEFT JOIN latest ON latest.trace_id = trace.trace_id
ORDER BY trace.seq;
