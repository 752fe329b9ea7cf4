-- A forgotten person's writes lose their words and their id; one without a verdict gets it.
UPDATE session_changes
SET user_id = CASE WHEN user_id = $name THEN $name_hash ELSE user_id END,
    contributor_ids = CASE
        WHEN list_contains(contributor_ids, $name_hash) THEN list_filter(contributor_ids, lambda id: id <> $name)
        ELSE list_transform(contributor_ids, lambda id: CASE WHEN id = $name THEN $name_hash ELSE id END)
    END,
    before = CASE WHEN before IS NULL THEN NULL ELSE $blank END,
    after = CASE WHEN after IS NULL THEN NULL ELSE $blank END,
    kept = CASE WHEN kept IS NULL THEN NULL ELSE $blank END,
    result = NULL,
    trace_ids = [],
    reason = CASE WHEN list_contains($open, session_changes.state) THEN 'forgotten' ELSE reason END,
    ts_verdict = CASE WHEN list_contains($open, session_changes.state) THEN $at ELSE ts_verdict END,
    state = CASE WHEN list_contains($open, session_changes.state) THEN 'undone_forgotten' ELSE session_changes.state END,
    ts_forgotten = $at
FROM about
WHERE about.seq = session_changes.seq;
