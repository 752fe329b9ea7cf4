-- The people of a session, with how many of its writes each is in as learner or contributor.
WITH writes AS (
    SELECT session_id, brain_id, conversation_id, list_distinct(list_append(contributor_ids, user_id)) AS people
    FROM session_changes
    WHERE session_id = $session_id
)
SELECT who.session_id, who.user_id, who.role, who.brain_id, who.conversation_id,
       count(writes.people) AS changes, who.ts_noted
FROM session_rows AS who
LEFT JOIN writes
    ON writes.brain_id = who.brain_id AND writes.conversation_id IS NOT DISTINCT FROM who.conversation_id
   AND list_contains(writes.people, who.user_id)
WHERE who.session_id = $session_id
GROUP BY ALL
ORDER BY who.ts_noted, who.role, who.user_id, who.brain_id, who.conversation_id;
