-- The traces that imported writes make. Metadata that is no JSON is kept as a JSON string.
SELECT place, change_seq, trace_id, brain_id, type, scope, content,
       coalesce(sha256(content), content_hash, sha256('')) AS content_hash, tags,
       CASE WHEN json_valid(metadata) THEN metadata ELSE to_json(metadata)::VARCHAR END AS metadata,
       parents, ts AS ts_created, ts AS ts_updated, untimed, seq, 'created' AS action, ts
FROM writes
ORDER BY place;
