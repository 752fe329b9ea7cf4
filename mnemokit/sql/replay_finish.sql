-- A call is over, and with it what earlier ones owed to its sources; one that had other sources too still owes those.
WITH settled AS (
    SELECT replay_no, list_filter(sources, lambda source: NOT list_contains($sources, source)) AS owed
    FROM replays
    WHERE list_contains($taken_up, replay_no)
)
UPDATE replays
SET finished = len(settled.owed) = 0,
    sources = CASE WHEN len(settled.owed) = 0 THEN replays.sources ELSE settled.owed END
FROM settled
WHERE settled.replay_no = replays.replay_no;
