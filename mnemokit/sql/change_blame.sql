-- The states of a live trace that writes made which still stand, in order.
WITH standing AS (
    SELECT state.*
    FROM change_traces AS state
    WHERE state.trace_id = $trace_id AND state.counts AND state.move = 'write' AND state.action <> 'resolved'
      AND state.trace_id IN (SELECT trace_id FROM traces WHERE trace_id = $trace_id)
)
SELECT change.change_id, change.actor, change.session_id, change.user_id, change.contributor_ids, standing.ts,
       standing.content, standing.type, standing.scope, to_json(standing.tags)::VARCHAR AS tags, standing.metadata,
       to_json(standing.parents)::VARCHAR AS parents
FROM standing
JOIN session_changes AS change ON change.seq = standing.change_seq
WHERE change.state IN ('applied', 'kept')
ORDER BY standing.seq;
