SELECT shown.*
FROM recall_rows AS shown
JOIN recalls AS recall ON recall.recall_id = shown.recall_id
WHERE $at IS NULL OR recall.ts_recalled <= $at
ORDER BY recall.seq, shown.rank;
