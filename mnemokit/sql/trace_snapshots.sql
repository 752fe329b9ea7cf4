-- Traces as JSON: with what happened to each, where the rows say that; a trace that is gone is only its id.
WITH told AS (
    SELECT place, action, trace_id, brain_id,
           json_object(
               'trace_id', trace_id, 'brain_id', brain_id, 'type', type, 'scope', scope, 'content', content,
               'tags', tags, 'metadata', metadata::JSON, 'parents', parents,
               'ts_created', strftime(ts_created, '%Y-%m-%dT%H:%M:%S.%fZ'),
               'ts_updated', strftime(ts_updated, '%Y-%m-%dT%H:%M:%S.%fZ')
           )::VARCHAR AS trace
    FROM states
)
SELECT CASE
           WHEN action IS NULL THEN trace
           WHEN brain_id IS NULL THEN json_object('action', action, 'trace_id', trace_id)::VARCHAR
           ELSE '{"action":"' || action || '",' || substr(trace, 2)
       END AS snapshot
FROM told
ORDER BY place;
