-- The record of every reasonlet, from its runs: n counted runs, s successes among them. Part of a WITH.
-- $at: runs and verdicts up to this instant (null: all).
latest_feedback AS (
    SELECT run_no, outcome
    FROM feedback
    WHERE ts_given <= coalesce($at, TIMESTAMPTZ 'infinity')
    QUALIFY row_number() OVER (PARTITION BY run_no ORDER BY ts_given DESC, seq DESC) = 1
),
verdicts AS (
    SELECT run.reasonlet_no, CASE WHEN judged.run_no IS NULL THEN run.outcome ELSE judged.outcome END AS outcome
    FROM runs AS run
    LEFT JOIN latest_feedback AS judged ON judged.run_no = run.seq
    WHERE run.ts_run <= coalesce($at, TIMESTAMPTZ 'infinity')
),
counted AS (
    SELECT reasonlet_no, count(*) AS n, count(*) FILTER (outcome = 'success') AS s
    FROM verdicts
    WHERE outcome IS NOT NULL
    GROUP BY reasonlet_no
),
