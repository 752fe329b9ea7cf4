-- Edges for which one of the lent ticks comes late: their history began before it, and has gone past it already, by a fact
-- or by a newer ager. Where somebody acted, the edges of a pair have one history: a promoted record lived as a proto first.
WITH histories AS (
    SELECT edge_no,
           CASE WHEN bool_or(ts_acted IS NOT NULL) OVER pair THEN min(edge_no) OVER pair ELSE edge_no END AS history_no
    FROM edges
    WINDOW pair AS (PARTITION BY src_executor, src_version, dst_executor)
),
spans AS (
    SELECT history_no, min(ts) AS ts_begin, max(ts) AS ts_end
    FROM edge_events
    JOIN histories USING (edge_no)
    GROUP BY history_no
)
SELECT DISTINCT histories.edge_no
FROM spans
JOIN histories USING (history_no)
JOIN lent_ticks AS tick
  ON tick.ts_ager > spans.ts_begin
 AND tick.ts_ager <= greatest(spans.ts_end, $newest)
