-- The ranking rule: every reasonlet with its record, its prior, where the prior came from, and its rate. Part of a WITH;
-- before it stands counted (reasonlet_no, n, s), and whatever is to be read in place of the table reasonlets.
-- $at: as of this instant (null: as it stands). $scope: this scope only (null: all). $k: strength of the prior, in runs.
-- $raw: a version inherits its parent's raw rate instead of the smoothed one.
records AS (
    SELECT reasonlet.*, coalesce(own_runs.n, 0) AS n, coalesce(own_runs.s, 0) AS s, parent.seq IS NOT NULL AS has_parent,
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
own_rates AS (
    SELECT *, (s + $k / 2) / (n + $k) AS own,
           CASE
               WHEN NOT has_parent THEN NULL
               WHEN NOT $raw THEN (parent_s + $k / 2) / (parent_n + $k)
               WHEN parent_n = 0 THEN 0.5::DOUBLE
               ELSE parent_s / parent_n
           END AS parent_rate
    FROM records
),
with_prior AS (
    SELECT *, greatest(0.5::DOUBLE, coalesce(parent_rate, 0.5::DOUBLE)) AS prior
    FROM own_rates
),
rated AS (
    SELECT *, CASE WHEN prior > 0.5 THEN 'parent' ELSE 'neutral' END AS prior_source,
           (s + $k * prior) / (n + $k) AS rate
    FROM with_prior
)
