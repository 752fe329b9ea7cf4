-- Where the kept versions of cut lineages stand once the reasonlets in gone are away: a kept child of one of them is a root.
WITH RECURSIVE kept AS (
    SELECT reasonlet_id, parent_id, version_no
    FROM reasonlets
    WHERE root_id IN (SELECT root_id FROM gone) AND reasonlet_id NOT IN (SELECT reasonlet_id FROM gone)
),
moved AS (
    SELECT reasonlet_id, reasonlet_id AS root_id, 0 AS depth, version_no
    FROM kept
    WHERE parent_id IN (SELECT reasonlet_id FROM gone)
    UNION ALL
    SELECT child.reasonlet_id, above.root_id, above.depth + 1 AS depth, child.version_no
    FROM kept AS child
    JOIN moved AS above ON above.reasonlet_id = child.parent_id
)
SELECT reasonlet_id, root_id, depth, version_no
FROM moved;
