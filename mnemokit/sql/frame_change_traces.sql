SELECT change.change_id, touched.trace_id, touched.move, touched.action, touched.counts, touched.forgotten,
       touched.content, touched.ts, touched.seq
FROM change_traces AS touched
JOIN session_changes AS change ON change.seq = touched.change_seq
WHERE $at IS NULL OR touched.ts <= $at
ORDER BY touched.seq;
