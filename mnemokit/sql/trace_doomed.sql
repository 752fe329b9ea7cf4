-- The traces that such a write created, changed or deleted; a write of a caller's own names its traces.
WITH named AS (
    SELECT unnest(trace_ids) AS trace_id
    FROM about
    WHERE operation = 'own'
)
SELECT touched.trace_id
FROM change_traces AS touched
JOIN about ON about.seq = touched.change_seq
WHERE touched.counts AND touched.action <> 'resolved'
UNION
SELECT trace.trace_id
FROM traces AS trace
SEMI JOIN named ON named.trace_id = trace.trace_id
ORDER BY trace_id;
