-- The runs of one reasonlet in order, with the verdict that counts: the latest feedback's, else the run's own outcome.
WITH its_runs AS (
    SELECT *
    FROM runs
    WHERE reasonlet_id = $reasonlet_id AND ts_run <= coalesce($at, TIMESTAMPTZ 'infinity')
),
latest_feedback AS (
    SELECT run_id, outcome
    FROM feedback
    SEMI JOIN its_runs USING (run_id)
    WHERE ts_given <= coalesce($at, TIMESTAMPTZ 'infinity')
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY ts_given DESC, seq DESC) = 1
)
SELECT run.run_id, run.ts_run, run.outcome,
       CASE WHEN judged.run_id IS NULL THEN run.outcome ELSE judged.outcome END AS verdict
FROM its_runs AS run
LEFT JOIN latest_feedback AS judged ON judged.run_id = run.run_id
ORDER BY run.ts_run, run.seq;
