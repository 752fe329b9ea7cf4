-- Whose words are in the traces: everybody behind the writes that made them what they are.
WITH wrote AS (
    SELECT DISTINCT change_seq
    FROM change_traces
    WHERE trace_id IN (SELECT unnest($trace_ids))
      AND counts AND move = 'write' AND action IN ('created', 'changed')
),
people AS (
    SELECT unnest(list_append(contributor_ids, user_id)) AS person
    FROM session_changes
    JOIN wrote ON wrote.change_seq = session_changes.seq
    WHERE state IN ('applied', 'kept')
)
SELECT DISTINCT person
FROM people
WHERE person IS NOT NULL
ORDER BY person;
