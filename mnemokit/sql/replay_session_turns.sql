SELECT turn.* EXCLUDE (arg_values, result_values)
FROM turns AS turn
SEMI JOIN slice ON slice.session_id = turn.session_id AND slice.source = turn.source
ORDER BY turn.turn_no;
