-- The same reject met again in another replay is the same reject.
INSERT INTO rejects BY NAME
SELECT found.source, found.file, found.place, found.reason, found.excerpt, found.user_id, $now::TIMESTAMPTZ AS ts_read
FROM found
ANTI JOIN rejects AS known
    ON known.source = found.source
    AND known.file IS NOT DISTINCT FROM found.file
    AND known.place IS NOT DISTINCT FROM found.place
    AND known.reason = found.reason
    AND known.excerpt IS NOT DISTINCT FROM found.excerpt;
