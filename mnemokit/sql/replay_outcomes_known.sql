-- What a session told after its capture was made: the outcome of a run that had none.
UPDATE runs
SET outcome = told.outcome
FROM told
WHERE told.run_id = runs.run_id
  AND told.source = runs.source
  AND told.session_id = runs.session_id
  AND runs.outcome IS NULL
RETURNING runs.reasonlet_no;
