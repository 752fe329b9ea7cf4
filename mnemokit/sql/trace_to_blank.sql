-- Everything that history knows of removed traces, and what undone writes of the person had made of kept ones.
SELECT past.change_seq, past.trace_id, past.move, past.action, past.ts, past.seq
FROM change_traces AS past
JOIN doomed ON doomed.trace_id = past.trace_id
UNION
SELECT past.change_seq, past.trace_id, past.move, past.action, past.ts, past.seq
FROM change_traces AS past
JOIN about ON about.seq = past.change_seq
WHERE NOT past.counts;
