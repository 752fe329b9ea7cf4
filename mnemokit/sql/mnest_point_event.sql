INSERT INTO edge_events BY NAME
SELECT $seq AS seq, $edge_no AS edge_no, $mnest_no AS mnest_no, $ts AS ts, 'passing' AS kind, $delta AS delta,
       $weight AS weight, false AS untimed, $turn_id AS turn_id, $decay_lambda AS decay_lambda, $tags AS tags,
       $desired_sig AS desired_sig
