-- Every id in the tables of memory writes that may be a person's; traces and sets have ids made here.
SELECT user_id AS name FROM session_rows
UNION SELECT session_id FROM session_rows
UNION SELECT brain_id FROM session_rows
UNION SELECT conversation_id FROM session_rows
UNION SELECT user_id FROM session_changes
UNION SELECT unnest(contributor_ids) FROM session_changes
UNION SELECT session_id FROM session_changes
UNION SELECT brain_id FROM session_changes
UNION SELECT conversation_id FROM session_changes
UNION SELECT target_id FROM session_changes WHERE operation = 'own'
UNION SELECT actor FROM session_changes
UNION SELECT brain_id FROM change_traces
UNION SELECT scope FROM change_traces
EXCEPT SELECT NULL
ORDER BY name;
