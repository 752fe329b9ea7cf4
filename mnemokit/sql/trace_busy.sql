-- Writes without a verdict that touched one of these traces.
WITH open_writes AS (
    SELECT change_id
    FROM session_changes
    WHERE state = 'applied' AND change_id <> $change_id
)
SELECT DISTINCT touched.change_id
FROM change_traces AS touched
SEMI JOIN open_writes ON open_writes.change_id = touched.change_id
WHERE touched.counts AND touched.trace_id IN (SELECT unnest($trace_ids))
ORDER BY touched.change_id;
