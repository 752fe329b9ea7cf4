-- Reasonlets that nothing used since $since: no run, no recall that showed them, and no used version below them.
-- What is untimed cannot be shown to be unused.
WITH RECURSIVE used AS (
    SELECT reasonlet_id FROM reasonlets WHERE ts_captured > $since OR untimed
    UNION
    SELECT reasonlet_id FROM runs WHERE ts_run > $since OR untimed
    UNION
    SELECT shown.reasonlet_id
    FROM recall_rows AS shown
    JOIN recalls AS recall ON recall.recall_id = shown.recall_id
    WHERE recall.ts_recalled > $since
),
kept AS (
    SELECT reasonlet_id, parent_id
    FROM reasonlets
    SEMI JOIN used USING (reasonlet_id)
    UNION
    SELECT parent.reasonlet_id, parent.parent_id
    FROM reasonlets AS parent
    JOIN kept ON kept.parent_id = parent.reasonlet_id
)
SELECT reasonlet_id, root_id, seq
FROM reasonlets
ANTI JOIN kept USING (reasonlet_id)
ORDER BY seq;
