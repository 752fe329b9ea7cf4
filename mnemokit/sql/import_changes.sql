INSERT INTO session_changes (change_id, kind, operation, actor, target_id, session_id, brain_id, conversation_id,
    user_id, contributor_ids, after, state, trace_ids, ts_candidate, ts_verdict, seq)
SELECT change_id, 'memory_write', 'import', actor, trace_id, session_id, brain_id, conversation_id,
    user_id, contributor_ids, '[' || snapshot || ']', 'kept', [trace_id], ts, ts, change_seq
FROM writes
ORDER BY place;
