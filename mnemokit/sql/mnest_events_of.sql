-- History of a record: its own, and that of every record that was merged into it.
WITH asked AS (
    SELECT coalesce(record_no, mnest_no) AS record_no, mnest_no
    FROM mnest_lives
    WHERE mnest_id = $mnest_id
),
lives AS (
    SELECT life.mnest_id
    FROM mnest_lives AS life
    JOIN asked ON life.mnest_no = asked.mnest_no
               OR (asked.mnest_no = asked.record_no AND life.record_no = asked.record_no)
)
SELECT *
FROM mnest_events
SEMI JOIN lives USING (mnest_id)
WHERE $at IS NULL OR ts <= $at
ORDER BY ts, seq, kind = 'merge', kind DESC
