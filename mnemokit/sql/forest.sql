-- Every reasonlet with its root and its depth.
-- As of a time ($at; null: as it stands, and nothing has moved) a parent that was captured later is not known: its versions
-- are roots of their own, with what is below them. (frame_reasonlets.sql says the same of whole rows.)
WITH RECURSIVE moved AS (
    SELECT child.seq, child.reasonlet_id AS root_id, 0 AS depth, TRUE AS is_root
    FROM reasonlets AS child
    JOIN reasonlets AS parent ON parent.seq = child.parent_no
    WHERE child.ts_captured <= $at AND parent.ts_captured > $at
    UNION ALL
    SELECT child.seq, parent.root_id, parent.depth + 1 AS depth, FALSE AS is_root
    FROM reasonlets AS child
    JOIN moved AS parent ON parent.seq = child.parent_no
    WHERE child.ts_captured <= $at
)
SELECT reasonlet.reasonlet_id, CASE WHEN moved.is_root THEN NULL ELSE reasonlet.parent_id END AS parent_id,
       coalesce(moved.root_id, reasonlet.root_id) AS root_id, reasonlet.version,
       coalesce(moved.depth, reasonlet.depth) AS depth, reasonlet.scope, reasonlet.ts_captured
FROM reasonlets AS reasonlet
LEFT JOIN moved ON moved.seq = reasonlet.seq
WHERE reasonlet.ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity');
