-- Edges with a live record that an ager ends: its weight has faded below the floor of its state by then. Those of the
-- lent edges are left out.
SELECT DISTINCT edge_no
FROM mnests
ANTI JOIN lent_edges USING (edge_no)
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now
  AND weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
      < CASE state WHEN 'proto' THEN $proto_floor ELSE $active_floor END
