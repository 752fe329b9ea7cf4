-- One lineage: every version with its way down from the root, and how many stand beside and below it.
-- A version whose parent was captured later than $at starts a way of its own.
WITH RECURSIVE members AS (
    SELECT *
    FROM reasonlets
    WHERE root_id = $root_id AND ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
ways AS (
    SELECT member.reasonlet_id, [member.reasonlet_id] AS path
    FROM members AS member
    ANTI JOIN members AS parent ON parent.reasonlet_id = member.parent_id
    UNION ALL
    SELECT child.reasonlet_id, list_append(way.path, child.reasonlet_id) AS path
    FROM members AS child
    JOIN ways AS way ON way.reasonlet_id = child.parent_id
),
descendants AS (
    SELECT ancestor AS reasonlet_id, count(*) - 1 AS descendants
    FROM (SELECT unnest(path) AS ancestor FROM ways)
    GROUP BY ancestor
),
children AS (
    SELECT parent_id, count(*) AS children
    FROM members
    WHERE parent_id IS NOT NULL
    GROUP BY parent_id
)
SELECT member.reasonlet_id, member.parent_id, member.root_id, member.version, len(way.path) - 1 AS depth, way.path,
       coalesce(beside.children - 1, 0) AS siblings, coalesce(below.children, 0) AS children, descendants.descendants,
       lineage.high_water, member.scope, member.question, member.subject, member.graph_hash, member.ts_captured
FROM members AS member
JOIN ways AS way ON way.reasonlet_id = member.reasonlet_id
JOIN descendants ON descendants.reasonlet_id = member.reasonlet_id
JOIN lineages AS lineage ON lineage.root_id = member.root_id
LEFT JOIN children AS beside ON beside.parent_id = member.parent_id
LEFT JOIN children AS below ON below.parent_id = member.reasonlet_id
ORDER BY member.version_no;
