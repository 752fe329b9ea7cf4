-- What a revert of one write would take along: later writes to its traces, traces built on them however far, and the
-- runs and recalls of sessions that could read it (the same brain, this write's moment or later).
WITH RECURSIVE this AS (
    SELECT change_id, session_id, brain_id, ts_candidate, seq
    FROM session_changes
    WHERE change_id = $change_id
),
wrote AS (
    SELECT trace_id, seq
    FROM change_traces
    WHERE change_seq IN (SELECT seq FROM this) AND move = 'write' AND counts AND action <> 'resolved'
),
later AS (
    SELECT touched.change_seq, touched.trace_id, touched.ts
    FROM change_traces AS touched
    JOIN wrote ON wrote.trace_id = touched.trace_id AND touched.seq > wrote.seq
    WHERE touched.change_seq NOT IN (SELECT seq FROM this) AND touched.move = 'write' AND touched.counts AND touched.action <> 'resolved'
),
links AS (
    SELECT trace_id, unnest(parents) AS parent_id
    FROM traces
    WHERE len(parents) > 0
),
built (trace_id, depth) AS (
    SELECT trace_id, 0 FROM wrote
    UNION
    SELECT link.trace_id, built.depth + 1
    FROM built
    JOIN links AS link ON link.parent_id = built.trace_id
    WHERE built.depth < 100
),
nearest AS (
    SELECT trace_id, min(depth) AS depth
    FROM built
    WHERE trace_id NOT IN (SELECT trace_id FROM wrote)
    GROUP BY trace_id
),
sessions AS (
    SELECT DISTINCT change.session_id
    FROM session_changes AS change
    JOIN this ON change.brain_id = this.brain_id
        AND (change.session_id = this.session_id OR change.ts_candidate >= this.ts_candidate)
),
used AS (
    SELECT run.run_id, run.recall_id, run.reasonlet_id, run.session_id, run.ts_run
    FROM runs AS run
    SEMI JOIN sessions ON sessions.session_id = run.session_id
    CROSS JOIN this
    WHERE run.untimed OR run.ts_run >= this.ts_candidate
)
SELECT 'later_write' AS what, change.change_id, later.trace_id, change.session_id, 1 AS depth, NULL AS run_id,
       NULL AS recall_id, NULL AS reasonlet_id, later.ts
FROM later
JOIN session_changes AS change ON change.seq = later.change_seq
WHERE change.state IN ('applied', 'kept')
UNION ALL
SELECT 'built_on', change.change_id, nearest.trace_id, change.session_id, nearest.depth, NULL, NULL, NULL, made.ts
FROM nearest
JOIN change_traces AS made ON made.trace_id = nearest.trace_id AND made.action = 'created' AND made.move = 'write'
    AND made.counts
JOIN session_changes AS change ON change.seq = made.change_seq
UNION ALL
SELECT 'run', NULL, NULL, session_id, NULL, run_id, recall_id, reasonlet_id, ts_run
FROM used
UNION ALL
SELECT 'recall', NULL, NULL, used.session_id, NULL, NULL, recall.recall_id, NULL, recall.ts_recalled
FROM recalls AS recall
JOIN used ON used.recall_id = recall.recall_id
ORDER BY ts, what, change_id, trace_id, run_id, recall_id;
