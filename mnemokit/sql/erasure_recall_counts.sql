-- A recall of someone else says how many rows it still has.
WITH touched AS (
    SELECT DISTINCT recall_id FROM gone_rows
),
left_over AS (
    SELECT touched.recall_id, count(shown.recall_id)::INTEGER AS shown
    FROM touched
    LEFT JOIN recall_rows AS shown ON shown.recall_id = touched.recall_id
    GROUP BY touched.recall_id
)
UPDATE recalls SET shown = left_over.shown FROM left_over WHERE recalls.recall_id = left_over.recall_id;
