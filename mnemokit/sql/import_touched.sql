-- The reasonlets whose runs are counted anew.
SELECT seq FROM new_reasonlets
UNION
SELECT reasonlet_no AS seq FROM runs SEMI JOIN new_runs USING (run_id)
UNION
SELECT reasonlet_no AS seq FROM feedback SEMI JOIN new_feedback USING (feedback_id);
