INSERT INTO mnests BY NAME
SELECT life.mnest_id, edge.src_executor, edge.src_version, edge.dst_executor, edge.dst_version, record.weight,
       record.uses, record.ts_first, record.ts_last, record.ts_used, record.decay_lambda, record.state, record.tags,
       record.desired_sig, record.untimed, record.mnest_no, record.edge_no
FROM lent_records AS record
JOIN edges AS edge USING (edge_no)
JOIN mnest_lives AS life USING (mnest_no)
