-- Live records that an ager ends: their weight has faded below the floor of their state by then. (A state without a
-- floor is never below it; a filter on the state would cost more time.)
SELECT mnest_no, edge_no, state,
       weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0) AS weight
FROM mnest_records
WHERE weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
      < CASE state WHEN 'proto' THEN $proto_floor WHEN 'active' THEN $active_floor ELSE 0 END
  AND NOT untimed AND ts_last < $now
