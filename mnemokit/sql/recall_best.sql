-- The best of what is similar, by similarity and rate; ties: more runs, then newer, then id.
SELECT reasonlet_id, version, parent_id, n, s, prior, prior_source, rate, own, parent_rate, scope, question, ts_captured,
       similarity, similarity * ((1 - $weight) + $weight * rate) AS score
FROM rated
WHERE similarity IS NOT NULL
ORDER BY round(score, 12) DESC, n DESC, ts_captured DESC, reasonlet_id
LIMIT $most;
