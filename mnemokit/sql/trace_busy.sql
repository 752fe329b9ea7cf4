-- Writes without a verdict that touched one of these traces.
WITH open_writes AS (
    SELECT seq, change_id
    FROM session_changes
    WHERE state = 'applied' AND seq <> $seq
)
SELECT DISTINCT open_writes.change_id
FROM change_traces AS touched
JOIN open_writes ON open_writes.seq = touched.change_seq
WHERE touched.counts AND touched.trace_id IN (SELECT unnest($trace_ids))
ORDER BY open_writes.change_id;
