-- The record of every reasonlet, as the store stands: what rank_counted.sql says, kept up to date by every write. Part of
-- a WITH.
counted AS (
    SELECT reasonlet_no, n, s FROM run_counts
),
