-- Captures of a batch that are not to be written: an erasure of their scope or subject refuses them, or their key is known.
-- A known key whose run is gone is forgotten if its scope or subject was ever erased.
WITH erased AS (
    SELECT named.realm, named.name, tombstone.ts_forgotten
    FROM named
    JOIN tombstones AS tombstone ON tombstone.name_hash = named.name_hash AND tombstone.realm = named.realm
),
known AS (
    SELECT batch.row, earlier.call, earlier.result, json_extract_string(earlier.result, '$.run_id') AS run_id
    FROM batch
    JOIN idempotency_keys AS earlier ON earlier.key_hash = batch.key_hash
),
standing AS (
    SELECT run_id
    FROM runs
    SEMI JOIN known USING (run_id)
),
looked_up AS (
    SELECT batch.row, batch.ts, known.call, known.result, standing.run_id IS NOT NULL AS stands,
           greatest(erased_scope.ts_forgotten, erased_subject.ts_forgotten) AS ts_forgotten
    FROM batch
    LEFT JOIN known ON known.row = batch.row
    LEFT JOIN standing ON standing.run_id = known.run_id
    LEFT JOIN erased AS erased_scope ON erased_scope.realm = 'scope' AND erased_scope.name = batch.scope
    LEFT JOIN erased AS erased_subject ON erased_subject.realm = 'subject' AND erased_subject.name = batch.subject
),
judged AS (
    SELECT row, call, result,
           ts_forgotten IS NOT NULL AND NOT stands AND (result IS NOT NULL OR ts_forgotten >= ts) AS forgotten
    FROM looked_up
)
SELECT row, call, result, forgotten
FROM judged
WHERE forgotten OR result IS NOT NULL
ORDER BY row;
