-- One lineage: every version with its way down from the root, and how many stand beside and below it.
-- As of a time ($at; null: as it stands) a parent that was captured later is not known: its versions are roots of their own,
-- and the highest number is that of the labels there were.
WITH RECURSIVE seen AS (
    SELECT *
    FROM reasonlets
    WHERE root_id = $root_id AND ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
members AS (
    SELECT seen.* REPLACE (parent.reasonlet_id AS parent_id)
    FROM seen
    LEFT JOIN seen AS parent ON parent.reasonlet_id = seen.parent_id
),
ways AS (
    SELECT reasonlet_id, [reasonlet_id] AS path
    FROM members
    WHERE parent_id IS NULL
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
SELECT member.reasonlet_id, member.parent_id, way.path[1] AS root_id, member.version, len(way.path) - 1 AS depth, way.path,
       coalesce(beside.children - 1, 0) AS siblings, coalesce(below.children, 0) AS children, descendants.descendants,
       CASE
           WHEN $at IS NULL THEN lineage.high_water
           ELSE max(member.version_no) OVER (PARTITION BY way.path[1])
       END AS high_water,
       member.scope, member.question, member.subject, member.graph_hash, member.ts_captured
FROM members AS member
JOIN ways AS way ON way.reasonlet_id = member.reasonlet_id
JOIN descendants ON descendants.reasonlet_id = member.reasonlet_id
JOIN lineages AS lineage ON lineage.root_id = member.root_id
LEFT JOIN children AS beside ON beside.parent_id = member.parent_id
LEFT JOIN children AS below ON below.parent_id = member.reasonlet_id
ORDER BY member.version_no;
