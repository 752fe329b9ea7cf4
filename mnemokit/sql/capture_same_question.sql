-- The reasonlets that captures of a batch may follow: of each scope and question, the newest one that is not later than
-- the batch's first capture of it, and every later one.
WITH asked AS (
    SELECT scope, question, min(ts) AS ts_first
    FROM claims
    WHERE question IS NOT NULL
    GROUP BY scope, question
),
same_question AS (
    SELECT reasonlet.*, reasonlet.ts_captured > asked.ts_first AS later
    FROM reasonlets AS reasonlet
    JOIN asked ON asked.scope = reasonlet.scope AND asked.question = reasonlet.question
),
candidates AS (
    SELECT *
    FROM same_question
    QUALIFY later OR row_number() OVER (
        PARTITION BY scope, question, later ORDER BY ts_captured DESC, seq DESC
    ) = 1
)
SELECT candidate.reasonlet_id, candidate.seq, candidate.version, candidate.scope, candidate.graph_hash, candidate.root_id,
       candidate.depth, lineage.high_water, candidate.question, epoch_us(candidate.ts_captured) AS us
FROM candidates AS candidate
JOIN lineages AS lineage ON lineage.root_id = candidate.root_id
ORDER BY candidate.ts_captured, candidate.seq;
