-- Earlier calls of replay that stopped before the sessions of these sources were captured, the earliest first.
SELECT replay_no, first_turn_no, ager IS NOT DISTINCT FROM $ager AS same_ager, base_first, base_last
FROM replays
WHERE NOT finished AND list_has_any(sources, $sources) AND replay_no IS DISTINCT FROM $own
ORDER BY replay_no;
