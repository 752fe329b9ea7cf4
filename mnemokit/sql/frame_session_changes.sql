-- A write as it stood then: before its verdict it was a candidate, before its revert it was kept.
WITH known AS (
    SELECT *,
           state NOT IN ('candidate', 'applied') AND ($at IS NULL OR ts_verdict <= $at) AS judged,
           state = 'reverted' AND ($at IS NULL OR ts_reverted <= $at) AS taken_back
    FROM session_changes
    WHERE $at IS NULL OR ts_candidate <= $at
)
SELECT change_id, kind, operation, actor, target_id, session_id, brain_id, conversation_id, user_id, contributor_ids,
       before, after,
       CASE WHEN judged AND state IN ('kept', 'reverted') THEN coalesce(kept, after) END AS kept,
       CASE
           WHEN taken_back THEN 'reverted'
           WHEN judged AND state = 'reverted' THEN 'kept'
           WHEN judged THEN state
       END AS verdict,
       CASE WHEN taken_back OR (judged AND state <> 'reverted') THEN reason END AS reason,
       trace_ids, ts_candidate,
       CASE WHEN judged THEN ts_verdict END AS ts_verdict,
       CASE WHEN taken_back THEN ts_reverted END AS ts_reverted,
       ts_forgotten
FROM known
ORDER BY ts_candidate, seq;
