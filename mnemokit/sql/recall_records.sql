-- The most similar ones, as the store stands, with their record and their parent's; part of a WITH. It reads run_counts,
-- which every write keeps equal to what rank_counted.sql counts, instead of every run. The gate is rounded as the
-- similarities are.
-- $closest: so many at most. A rate is never above 1, so that no score is above its similarity: what is less similar than the
-- worst score to be shown cannot be shown, and need not be rated (recall.py looks whether these were enough).
closest AS (
    SELECT seq, similarity
    FROM similarities
    WHERE similarity >= round(1e12 * $min_similarity) / 1e12
    ORDER BY similarity DESC
    LIMIT $closest
),
records AS (
    SELECT closest.seq, closest.similarity, reasonlet.reasonlet_id, reasonlet.ts_captured, own_runs.n, own_runs.s,
           reasonlet.parent_no IS NOT NULL AS has_parent, parent_runs.n AS parent_n, parent_runs.s AS parent_s
    FROM closest
    JOIN reasonlets AS reasonlet ON reasonlet.seq = closest.seq
    JOIN run_counts AS own_runs ON own_runs.reasonlet_no = closest.seq
    -- A root stands in for the parent that it has not: an inner join is the faster one, and has_parent rules.
    JOIN run_counts AS parent_runs ON parent_runs.reasonlet_no = coalesce(reasonlet.parent_no, reasonlet.seq)
),
