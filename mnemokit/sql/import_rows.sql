-- One row per session, person, brain and conversation, at the first write; none for who is no one or a hash already.
INSERT INTO session_rows (session_id, user_id, role, brain_id, conversation_id, ts_noted)
WITH present AS (
    SELECT session_id, user_id AS name, 'learner' AS role, brain_id, conversation_id, ts, place
    FROM writes
    WHERE user_id IS NOT NULL
    UNION ALL
    SELECT session_id, unnest(contributor_ids), 'visitor', brain_id, conversation_id, ts, place
    FROM writes
),
first_seen AS (
    SELECT *
    FROM present
    WHERE name NOT IN (SELECT unnest($anonymous))
      AND name NOT IN (SELECT name_hash FROM tombstones WHERE realm = $realm)
    QUALIFY row_number() OVER (
        PARTITION BY session_id, name, brain_id, conversation_id ORDER BY place, role
    ) = 1
)
SELECT seen.session_id, seen.name, seen.role, seen.brain_id, seen.conversation_id, seen.ts
FROM first_seen AS seen
WHERE NOT EXISTS (
    SELECT 1
    FROM session_rows AS there
    WHERE there.session_id = seen.session_id AND there.user_id = seen.name AND there.brain_id = seen.brain_id
      AND there.conversation_id IS NOT DISTINCT FROM seen.conversation_id
)
ORDER BY seen.place;
