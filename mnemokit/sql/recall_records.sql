-- What may be shown, as the store stands, with its record and its parent's; part of a WITH. It reads run_counts, which every
-- write keeps equal to what rank_counted.sql counts, instead of every run. The gate is rounded as the similarities are.
-- A prior is never below 1/2 and a rate never above 1. So the most similar questions, with neutral priors, give a score that
-- is reached in any case, and what is less similar than that score cannot be shown: it need not be rated.
closest AS (
    SELECT seq, similarity
    FROM similarities
    WHERE similarity >= round(1e12 * $min_similarity) / 1e12
    ORDER BY similarity DESC
    LIMIT 16 * $most
),
reached AS (
    SELECT closest.similarity * ((1 - $weight) + $weight * (run.s + $k / 2) / (run.n + $k)) * (1 - 1e-9) AS score
    FROM closest
    JOIN run_counts AS run ON run.reasonlet_no = closest.seq
    ORDER BY score DESC
    LIMIT 1 OFFSET $most - 1
),
candidates AS (
    SELECT seq, similarity
    FROM similarities
    WHERE similarity >= greatest(round(1e12 * $min_similarity) / 1e12, coalesce((SELECT score FROM reached), 0))
),
records AS (
    SELECT reasonlet.reasonlet_id, reasonlet.version, reasonlet.parent_id, reasonlet.scope, reasonlet.question,
           reasonlet.ts_captured, candidates.similarity, own_runs.n, own_runs.s,
           parent_runs.reasonlet_no IS NOT NULL AS has_parent, parent_runs.n AS parent_n, parent_runs.s AS parent_s
    FROM candidates
    JOIN reasonlets AS reasonlet ON reasonlet.seq = candidates.seq
    JOIN run_counts AS own_runs ON own_runs.reasonlet_no = reasonlet.seq
    LEFT JOIN run_counts AS parent_runs ON parent_runs.reasonlet_no = reasonlet.parent_no
),
