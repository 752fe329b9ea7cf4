INSERT INTO mnest_records BY NAME
SELECT $mnest_id AS mnest_id, $src AS src_executor, $src_version AS src_version, $dst AS dst_executor,
       $dst_version AS dst_version, $weight AS weight, 1 AS uses, $ts AS ts_first, $ts AS ts_last, $ts AS ts_used,
       $decay_lambda AS decay_lambda, $state AS state, $tags AS tags, $desired_sig AS desired_sig, false AS untimed,
       $mnest_no AS mnest_no, $edge_no AS edge_no
