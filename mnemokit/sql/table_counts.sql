SELECT 'reasonlets' AS name, count(*) AS n FROM reasonlets
UNION ALL
SELECT 'runs' AS name, count(*) AS n FROM runs
UNION ALL
SELECT 'feedback' AS name, count(*) AS n FROM feedback
UNION ALL
SELECT 'recalls' AS name, count(*) AS n FROM recalls
UNION ALL
SELECT 'recall_rows' AS name, count(*) AS n FROM recall_rows
UNION ALL
SELECT 'mnests' AS name, count(*) AS n FROM mnests
UNION ALL
SELECT 'mnest_events' AS name, count(*) AS n FROM edge_events
UNION ALL
SELECT 'ager_runs' AS name, count(*) AS n FROM ager_runs
UNION ALL
SELECT 'canonical_queries' AS name, count(*) AS n FROM canonical_queries
UNION ALL
SELECT 'traces' AS name, count(*) AS n FROM traces
UNION ALL
SELECT 'session_changes' AS name, count(*) AS n FROM session_changes
UNION ALL
SELECT 'change_traces' AS name, count(*) AS n FROM change_traces
UNION ALL
SELECT 'tombstones' AS name, count(*) AS n FROM tombstones
UNION ALL
SELECT 'session_rows' AS name, count(*) AS n FROM session_rows
UNION ALL
SELECT 'turns' AS name, count(*) AS n FROM turns
UNION ALL
SELECT 'rejects' AS name, count(*) AS n FROM rejects;
