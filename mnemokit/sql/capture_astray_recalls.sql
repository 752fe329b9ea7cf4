-- The first capture of a batch that names a recall which is not there, or searched another scope.
SELECT followed.row, followed.scope, followed.recall_id
FROM followed
ANTI JOIN recalls AS recall ON recall.recall_id = followed.recall_id AND recall.scope = followed.scope
ORDER BY followed.row
LIMIT 1;
