-- The best of what is similar, by similarity and rate; ties: more runs, then newer, then id.
, best AS (
    SELECT rated.*, candidates.similarity,
           candidates.similarity * ((1 - $weight) + $weight * rated.rate) AS score
    FROM candidates
    JOIN rated ON rated.seq = candidates.seq
    ORDER BY round(score, 12) DESC, n DESC, ts_captured DESC, reasonlet_id
    LIMIT $most
)
SELECT best.reasonlet_id, shown.version, shown.parent_id, best.n, best.s, best.prior, best.prior_source, best.rate,
       best.own, best.parent_rate, shown.scope, shown.question, best.ts_captured, best.similarity, best.score
FROM best
JOIN main.reasonlets AS shown ON shown.seq = best.seq
ORDER BY round(best.score, 12) DESC, best.n DESC, best.ts_captured DESC, best.reasonlet_id;
