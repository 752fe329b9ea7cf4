SELECT shown.recall_id, shown.rank, shown.reasonlet_id, shown.similarity, shown.rate, shown.score
FROM recall_rows AS shown
JOIN recalls AS recall ON recall.recall_id = shown.recall_id
SEMI JOIN exported ON exported.reasonlet_id = shown.reasonlet_id
ORDER BY recall.seq, shown.rank;
