-- What counts for one run: the latest verdict, else the run's own outcome.
WITH said AS (
    SELECT outcome, ts_given, seq FROM feedback WHERE run_no = $run_no
    UNION ALL
    SELECT outcome, NULL AS ts_given, NULL AS seq FROM runs WHERE seq = $run_no
)
SELECT outcome
FROM said
ORDER BY ts_given DESC NULLS LAST, seq DESC NULLS LAST
LIMIT 1;
