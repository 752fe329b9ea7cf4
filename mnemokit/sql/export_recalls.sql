-- The scope's recalls, and those that showed an exported reasonlet or were followed by an exported run.
WITH followed AS (
    SELECT run.recall_id FROM runs AS run SEMI JOIN exported ON exported.reasonlet_id = run.reasonlet_id
    UNION
    SELECT shown.recall_id FROM recall_rows AS shown SEMI JOIN exported ON exported.reasonlet_id = shown.reasonlet_id
    UNION
    SELECT recall_id FROM recalls WHERE scope = $scope
)
SELECT recall.recall_id, recall.scope, recall.question, recall.subject, recall.weight, recall.ts_recalled
FROM recalls AS recall
SEMI JOIN followed USING (recall_id)
ORDER BY recall.seq;
