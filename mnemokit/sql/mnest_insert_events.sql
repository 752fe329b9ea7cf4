INSERT INTO edge_events BY NAME
SELECT seq, edge_no, mnest_no, ts, kind, delta, weight, untimed, turn_no, turn_id, decay_lambda, tags, desired_sig,
       old_state, new_state, reason, detail
FROM lent_events
