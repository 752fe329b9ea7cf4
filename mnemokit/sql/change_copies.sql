-- Writes of other people that hold a copy of a removed trace, with that copy blanked. A write that only met a removed
-- trace planned the same words under another id, so it loses all of its plan.
WITH holders AS (
    SELECT touched.change_seq AS seq, bool_or(touched.action = 'resolved') AS met
    FROM change_traces AS touched
    JOIN doomed ON doomed.trace_id = touched.trace_id
    ANTI JOIN about ON about.seq = touched.change_seq
    GROUP BY touched.change_seq
),
parts AS (
    SELECT holder.seq, holder.met, part.name, part.entries
    FROM session_changes AS change
    JOIN holders AS holder ON holder.seq = change.seq
    CROSS JOIN LATERAL (
        VALUES ('before', change.before), ('after', change.after), ('kept', change.kept)
    ) AS part (name, entries)
    WHERE part.entries IS NOT NULL
),
entries AS (
    SELECT seq, met, name,
           unnest(json_extract(entries, '$[*]'))::VARCHAR AS entry,
           generate_subscripts(json_extract(entries, '$[*]'), 1) AS place
    FROM parts
),
blanked AS (
    SELECT entry.seq, entry.name, entry.place,
           CASE
               WHEN entry.met OR doomed.trace_id IS NOT NULL
                   THEN json_object('trace_id', json_extract_string(entry.entry, '$.trace_id'), 'forgotten', TRUE)::VARCHAR
               ELSE entry.entry
           END AS entry
    FROM entries AS entry
    LEFT JOIN doomed ON doomed.trace_id = json_extract_string(entry.entry, '$.trace_id')
)
SELECT seq,
       '[' || string_agg(entry, ',' ORDER BY place) FILTER (name = 'before') || ']' AS before,
       '[' || string_agg(entry, ',' ORDER BY place) FILTER (name = 'after') || ']' AS after,
       '[' || string_agg(entry, ',' ORDER BY place) FILTER (name = 'kept') || ']' AS kept
FROM blanked
GROUP BY seq
ORDER BY seq;
