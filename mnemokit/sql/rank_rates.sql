-- The ranking rule: from a record and the parent's to the prior, where it came from, and the rate. Part of a WITH; before
-- it stands records (n, s, has_parent, parent_n, parent_s, and whatever else is to be carried along).
-- $k: strength of the prior, in runs. $raw: a version inherits its parent's raw rate instead of the smoothed one.
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
