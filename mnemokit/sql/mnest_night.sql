-- What a night meets: how many live records wait for it, how many of them are protos, and those that it ends: their weight
-- has faded below the floor of their state by then. (One look at the table; a state without a floor is no live one, and
-- never below it.)
WITH faded AS (
    SELECT mnest_no, edge_no, weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0) AS weight,
           CASE state WHEN 'proto' THEN $proto_floor WHEN 'active' THEN $active_floor ELSE 0 END AS floor,
           state IN ('active', 'proto') AS is_live, state = 'proto' AS is_proto
    FROM mnest_records
    WHERE NOT untimed AND ts_last < $now AND ts_demoted IS NULL
)
SELECT count(*) FILTER (is_live) AS n, count(*) FILTER (is_proto) AS protos,
       list({'mnest_no': mnest_no, 'edge_no': edge_no, 'is_proto': is_proto, 'weight': weight})
           FILTER (weight < floor) AS ended
FROM faded
