-- The people whose words are in the traces that a write names as parents, however far up.
WITH RECURSIVE stored AS (
    SELECT DISTINCT link.place, unnest(list_append(change.contributor_ids, change.user_id)) AS name
    FROM links AS link
    JOIN change_traces AS made ON made.trace_id = link.parent_id AND made.counts AND made.move = 'write'
        AND made.action IN ('created', 'changed')
    JOIN session_changes AS change ON change.seq = made.change_seq AND change.state IN ('applied', 'kept')
    WHERE link.parent_place IS NULL
),
inherited (place, name) AS (
    SELECT place, name FROM people
    UNION
    SELECT place, name FROM stored WHERE name IS NOT NULL
    UNION
    SELECT link.place, inherited.name
    FROM inherited
    JOIN links AS link ON link.parent_place = inherited.place
)
SELECT place, name
FROM inherited
WHERE name NOT IN (SELECT unnest($anonymous))
ORDER BY place, name;
