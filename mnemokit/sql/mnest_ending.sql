-- Edges with a live record that an ager ends: its weight has faded below the floor of its state by then. The lent edges
-- are left out; no weight of at least the ceiling is ended. (A state without a floor is never below it; a filter on the
-- state would cost more time.)
SELECT DISTINCT edge_no
FROM mnests
ANTI JOIN lent_edges USING (edge_no)
WHERE weight < $ceiling
  AND weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
      < CASE state WHEN 'proto' THEN $proto_floor WHEN 'active' THEN $active_floor ELSE 0 END
  AND NOT untimed AND ts_last < $now
