INSERT INTO turns BY NAME
SELECT turn_no, source, session_id, turn_id, step, parallel_group, executor, executor_version, requestor, ts, ok,
       user_id, scope, question, session_outcome, meta
FROM fresh;
