,
-- The best of what is similar, by similarity and rate; ties: more runs, then newer, then id.
-- rated_in_all, least_similar: how many were rated, and the similarity of the last one among them.
best AS (
    SELECT *, similarity * ((1 - $weight) + $weight * rate) AS score,
           count(*) OVER () AS rated_in_all, min(similarity) OVER () AS least_similar
    FROM rated
    WHERE similarity IS NOT NULL
    ORDER BY round(score, 12) DESC, n DESC, ts_captured DESC, reasonlet_id
    LIMIT $most
)
-- Their words are looked up last: reading the questions of all that were rated would take longer than rating them.
SELECT best.reasonlet_id, reasonlet.version, CASE WHEN has_parent THEN reasonlet.parent_id END AS parent_id, n, s, prior,
       prior_source, rate, own, parent_rate, reasonlet.scope, reasonlet.question, best.ts_captured, similarity, score,
       rated_in_all, least_similar
FROM best
JOIN main.reasonlets AS reasonlet ON reasonlet.seq = best.seq
ORDER BY round(score, 12) DESC, n DESC, best.ts_captured DESC, best.reasonlet_id;
