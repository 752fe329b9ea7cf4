UPDATE session_rows
SET role = 'learner'
FROM wanted
WHERE wanted.role = 'learner' AND session_rows.role = 'visitor' AND session_rows.user_id = wanted.user_id
  AND session_rows.session_id = $session_id AND session_rows.brain_id = $brain_id
  AND session_rows.conversation_id IS NOT DISTINCT FROM $conversation_id;
