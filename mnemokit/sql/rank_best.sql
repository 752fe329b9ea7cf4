-- Ranked rows, best first; ties: more runs, then newer, then id. Rates that differ by less than rounding are equal.
SELECT reasonlet_id, version, parent_id, n, s, prior, prior_source, rate, own, parent_rate, scope, question, ts_captured
FROM rated
ORDER BY round(rate, 12) DESC, n DESC, ts_captured DESC, reasonlet_id;
