-- Every reasonlet with its root and its depth.
SELECT reasonlet_id, parent_id, root_id, version, depth, scope, ts_captured
FROM reasonlets
WHERE ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity');
