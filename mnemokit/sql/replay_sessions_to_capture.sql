-- Sessions that got turns since a turn number, in the order of their last step (untimed ones by arrival).
WITH touched AS (
    SELECT DISTINCT source, session_id
    FROM turns
    WHERE turn_no >= $first_turn_no AND list_contains($sources, source)
)
SELECT turn.source, turn.session_id,
       arg_max(turn.ts, turn.step) AS ts,
       min(turn.turn_no) AS first_turn_no
FROM turns AS turn
SEMI JOIN touched ON touched.session_id = turn.session_id AND touched.source = turn.source
WHERE turn.executor IS NOT NULL
GROUP BY turn.source, turn.session_id
ORDER BY ts NULLS FIRST, first_turn_no;
