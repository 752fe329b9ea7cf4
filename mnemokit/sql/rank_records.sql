-- Every reasonlet with its record and its parent's. Part of a WITH; before it stands counted (reasonlet_no, n, s), and
-- whatever is to be read in place of the table reasonlets.
-- $at: as of this instant (null: as it stands); a parent that was not there then is neither named nor inherited from.
-- $scope: this scope only (null: all).
records AS (
    SELECT reasonlet.* REPLACE (CASE WHEN $at IS NULL OR parent.seq IS NOT NULL THEN reasonlet.parent_id END AS parent_id),
           coalesce(own_runs.n, 0) AS n, coalesce(own_runs.s, 0) AS s, parent.seq IS NOT NULL AS has_parent,
           coalesce(parent_runs.n, 0) AS parent_n, coalesce(parent_runs.s, 0) AS parent_s
    FROM reasonlets AS reasonlet
    LEFT JOIN counted AS own_runs ON own_runs.reasonlet_no = reasonlet.seq
    LEFT JOIN reasonlets AS parent
        ON parent.seq = reasonlet.parent_no
        AND parent.ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
    LEFT JOIN counted AS parent_runs ON parent_runs.reasonlet_no = parent.seq
    WHERE reasonlet.ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
      AND ($scope IS NULL OR reasonlet.scope = $scope)
),
