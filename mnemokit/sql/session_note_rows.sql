INSERT INTO session_rows (session_id, user_id, role, brain_id, conversation_id, ts_noted)
SELECT $session_id, wanted.user_id, wanted.role, $brain_id, $conversation_id, $at
FROM wanted
WHERE NOT EXISTS (
    SELECT 1
    FROM session_rows AS there
    WHERE there.session_id = $session_id AND there.user_id = wanted.user_id AND there.brain_id = $brain_id
      AND there.conversation_id IS NOT DISTINCT FROM $conversation_id
);
