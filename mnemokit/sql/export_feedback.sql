SELECT verdict.feedback_id, verdict.run_id, verdict.outcome, verdict.subject, verdict.note, verdict.ts_given
FROM feedback AS verdict
JOIN runs AS run ON run.run_id = verdict.run_id
SEMI JOIN exported ON exported.reasonlet_id = run.reasonlet_id
ORDER BY verdict.seq;
