-- The reasonlets of a source that nothing from elsewhere stands on: neither a run of them nor of a version below them, nor
-- a version below them, is from elsewhere.
WITH RECURSIVE elsewhere AS (
    SELECT reasonlet_id FROM reasonlets WHERE source IS DISTINCT FROM $source
    UNION
    SELECT reasonlet_id FROM runs WHERE source IS DISTINCT FROM $source
),
kept AS (
    SELECT reasonlet_id, parent_id
    FROM reasonlets
    SEMI JOIN elsewhere USING (reasonlet_id)
    UNION
    SELECT parent.reasonlet_id, parent.parent_id
    FROM reasonlets AS parent
    JOIN kept ON kept.parent_id = parent.reasonlet_id
)
SELECT reasonlet_id, root_id, seq
FROM reasonlets
ANTI JOIN kept USING (reasonlet_id)
WHERE source = $source
ORDER BY seq;
