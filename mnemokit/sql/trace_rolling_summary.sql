-- The rolling summary that stands in this brain, scope and conversation.
SELECT trace.trace_id
FROM traces AS trace
JOIN change_traces AS made ON made.trace_id = trace.trace_id
JOIN session_changes AS change ON change.seq = made.change_seq
WHERE trace.brain_id = $brain_id AND trace.type = $type AND trace.scope IS NOT DISTINCT FROM $scope
  AND made.counts AND made.move = 'write' AND made.action = 'created'
  AND change.operation = 'rolling_summary' AND change.conversation_id IS NOT DISTINCT FROM $conversation_id
ORDER BY trace.seq DESC
LIMIT 1;
