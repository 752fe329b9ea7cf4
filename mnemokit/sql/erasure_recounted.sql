-- The reasonlets whose runs are counted anew: they go, or lose a run or a verdict.
SELECT seq FROM gone
UNION
SELECT reasonlet_no AS seq FROM runs SEMI JOIN gone_runs USING (run_id)
UNION
SELECT reasonlet_no AS seq FROM feedback SEMI JOIN gone_feedback USING (feedback_id);
