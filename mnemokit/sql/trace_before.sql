-- The traces that a write touched as they were before it, the instant of their latest state, and whether a write that
-- stands came later. present: was there a trace before?
WITH written AS (
    SELECT trace_id, action, seq
    FROM change_traces
    WHERE change_seq = $seq AND move = 'write' AND counts AND action <> 'resolved'
),
past AS (
    SELECT state.*, written.action AS written_action, written.seq AS written_seq
    FROM change_traces AS state
    JOIN written ON written.trace_id = state.trace_id
    WHERE state.counts AND state.action <> 'resolved'
),
standing AS (
    SELECT seq, change_id
    FROM session_changes
    WHERE state IN ('applied', 'kept') AND seq <> $seq
      AND seq IN (SELECT change_seq FROM past WHERE seq > written_seq)
),
later AS (
    SELECT past.trace_id, list(DISTINCT standing.change_id ORDER BY standing.change_id) AS later_writes
    FROM past
    JOIN standing ON standing.seq = past.change_seq
    WHERE past.seq > past.written_seq AND past.move = 'write'
    GROUP BY past.trace_id
),
latest AS (
    SELECT trace_id, max(ts) AS ts_state
    FROM past
    GROUP BY trace_id
),
before AS (
    SELECT *
    FROM past
    WHERE seq < written_seq
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY seq DESC) = 1
)
SELECT written.action AS written_action, written.trace_id, coalesce(before.present, FALSE) AS present,
       before.brain_id, before.type, before.scope, before.content, before.content_hash, before.tags, before.metadata,
       before.parents, before.ts_created, before.ts_updated, before.untimed, before.trace_seq AS seq,
       latest.ts_state, coalesce(later.later_writes, []) AS later_writes
FROM written
LEFT JOIN before ON before.trace_id = written.trace_id
LEFT JOIN latest ON latest.trace_id = written.trace_id
LEFT JOIN later ON later.trace_id = written.trace_id
ORDER BY written.seq;
