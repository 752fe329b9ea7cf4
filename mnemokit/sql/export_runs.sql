SELECT run.run_id, run.reasonlet_id, run.outcome, run.subject, run.provenance, run.recall_id, run.ts_run, run.untimed,
       run.source, run.session_id
FROM runs AS run
SEMI JOIN exported ON exported.reasonlet_id = run.reasonlet_id
ORDER BY run.seq;
