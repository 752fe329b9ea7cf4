-- The best of what is similar, by similarity and rate; ties: more runs, then newer, then id.
, scored AS (
    SELECT rated.seq, rated.n, rated.s, rated.own, rated.parent_rate, rated.prior, rated.prior_source, rated.rate,
           rated.ts_captured, rated.reasonlet_id, similarities.similarity,
           similarities.similarity * ((1 - $weight) + $weight * rated.rate) AS score
    FROM similarities
    JOIN rated ON rated.seq = similarities.seq
    WHERE similarities.similarity >= $min_similarity
),
best AS (
    SELECT *
    FROM scored
    ORDER BY round(score, 12) DESC, n DESC, ts_captured DESC, reasonlet_id
    LIMIT $most
)
SELECT best.*, shown.version, shown.parent_id, shown.scope, shown.question
FROM best
JOIN main.reasonlets AS shown ON shown.seq = best.seq
ORDER BY round(best.score, 12) DESC, best.n DESC, best.ts_captured DESC, best.reasonlet_id;
