-- Each trace in the latest state that it had by then; what was erased has no state at any time.
WITH latest AS (
    SELECT *
    FROM change_traces
    WHERE counts AND action <> 'resolved' AND ts <= $at
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY ts DESC, seq DESC) = 1
)
SELECT trace_id, brain_id, type, scope, content, tags, metadata, parents, ts_created, ts_updated, untimed
FROM latest
WHERE present
ORDER BY ts_created, trace_seq;
