-- The facts of the lent edges, up to an instant if one is given. What agers derived is not among them.
SELECT event.seq, event.edge_no, event.mnest_no, event.ts, event.kind, event.untimed, event.turn_no, event.turn_id,
       event.decay_lambda, event.tags, event.desired_sig, event.old_state, event.new_state, event.reason, event.detail
FROM edge_events AS event
SEMI JOIN lent_edges USING (edge_no)
WHERE event.kind IN ('passing', 'transition', 'promote', 'import')
  AND ($before IS NULL OR event.ts <= $before)
ORDER BY event.ts, event.seq
