-- The writes that are about a person: they are the session's learner or one of the contributors.
-- blanked: for whomever; fresh: still to be blanked for this person.
SELECT change_id, seq, session_id, operation, state, trace_ids, ts_forgotten IS NOT NULL AS blanked,
       coalesce(ts_forgotten IS NULL OR user_id = $name OR list_contains(contributor_ids, $name), TRUE) AS fresh
FROM session_changes
WHERE user_id IN ($name, $name_hash) OR list_has_any(contributor_ids, [$name, $name_hash])
ORDER BY seq;
