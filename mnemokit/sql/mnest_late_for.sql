-- Edges for which one of the lent ticks comes late: their history began before it, and has gone past it already,
-- by a fact or by a newer ager.
WITH span AS (
    SELECT edge_no, min(ts) AS ts_begin, max(ts) AS ts_end
    FROM edge_events
    GROUP BY edge_no
)
SELECT DISTINCT span.edge_no
FROM span
JOIN lent_ticks AS tick
  ON tick.ts_ager > span.ts_begin
 AND tick.ts_ager <= greatest(span.ts_end, $newest)
