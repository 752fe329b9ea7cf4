SELECT mnest_no, mnest_id, weight, uses, epoch_us(ts_first), epoch_us(ts_last), epoch_us(ts_used), decay_lambda, tags,
       desired_sig, untimed
FROM mnests
WHERE edge_no = $edge_no AND state = $state
