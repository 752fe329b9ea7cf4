-- The latest verdict on a run replaces the run's own outcome, also a verdict that says the outcome is unknown.
WITH latest_feedback AS (
    SELECT run_id, outcome
    FROM feedback
    WHERE $at IS NULL OR ts_given <= $at
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY ts_given DESC, seq DESC) = 1
)
SELECT run.*, CASE WHEN judged.run_id IS NULL THEN run.outcome ELSE judged.outcome END AS verdict
FROM runs AS run
LEFT JOIN latest_feedback AS judged ON judged.run_id = run.run_id
WHERE $at IS NULL OR run.ts_run <= $at
ORDER BY run.ts_run, run.seq;
