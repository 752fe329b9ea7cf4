-- A brain or a scope is named like the person: the name goes from the snapshots of every write in it.
UPDATE session_changes
SET before = replace(before, to_json($name)::VARCHAR, to_json($name_hash)::VARCHAR),
    after = replace(after, to_json($name)::VARCHAR, to_json($name_hash)::VARCHAR),
    kept = replace(kept, to_json($name)::VARCHAR, to_json($name_hash)::VARCHAR)
WHERE contains(concat(before, after, kept), to_json($name)::VARCHAR);
