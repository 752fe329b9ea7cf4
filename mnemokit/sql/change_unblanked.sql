-- Of forgotten people: writes of sessions of theirs that kept words, and blanking that is still to be done.
WITH forgotten AS (
    SELECT name_hash
    FROM tombstones
    WHERE realm = $realm AND ts_readmitted IS NULL
)
SELECT change.user_id AS name_hash, 'session_changes' AS place, count(*) AS n
FROM session_changes AS change
SEMI JOIN forgotten ON forgotten.name_hash = change.user_id
WHERE change.ts_forgotten IS NULL
GROUP BY change.user_id
UNION ALL
SELECT name_hash, 'unfinished_forgets', 1
FROM unfinished_forgets
ORDER BY name_hash, place;
