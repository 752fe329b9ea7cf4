-- Everything that happened to a trace, in order. A caller's own change that names it has no state here, only its JSON.
WITH happened AS (
    SELECT change_seq, move, action, counts, forgotten, present, ts, seq, trace_id, brain_id, type, scope, content, tags,
           metadata, parents, ts_created, ts_updated
    FROM change_traces
    WHERE trace_id = $trace_id
),
named AS (
    SELECT seq AS change_seq, 'write' AS move, 'own' AS action, state = 'kept' AS counts,
           ts_forgotten IS NOT NULL AS forgotten, FALSE AS present, ts_candidate AS ts, seq, $trace_id AS trace_id,
           before AS own_before, coalesce(kept, after) AS own_after
    FROM session_changes
    WHERE operation = 'own' AND list_contains(trace_ids, $trace_id)
)
SELECT happened.*, change.change_id, change.actor, change.session_id, change.user_id, change.contributor_ids, change.reason,
       CASE WHEN change.state IN ('candidate', 'applied') THEN NULL ELSE change.state END AS verdict
FROM (SELECT * FROM happened UNION ALL BY NAME SELECT * FROM named) AS happened
JOIN session_changes AS change ON change.seq = happened.change_seq
ORDER BY happened.seq;
