-- For planned new traces: the live trace with the same words in the same brain, scope and type, the oldest of several.
SELECT new.trace_id, arg_min(there.trace_id, there.seq) AS twin_id
FROM planned AS new
JOIN traces AS there
    ON there.content_hash = new.content_hash AND there.brain_id = new.brain_id AND there.type = new.type
   AND there.scope IS NOT DISTINCT FROM new.scope
WHERE new.action = 'created'
  AND there.trace_id NOT IN (SELECT trace_id FROM planned WHERE action = 'deleted')
GROUP BY new.trace_id
ORDER BY new.trace_id;
