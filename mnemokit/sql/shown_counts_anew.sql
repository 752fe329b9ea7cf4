-- Every recall in touched_recalls says how many rows it has.
WITH counted AS (
    SELECT touched.recall_id, count(shown.recall_id)::INTEGER AS shown
    FROM touched_recalls AS touched
    LEFT JOIN recall_rows AS shown ON shown.recall_id = touched.recall_id
    GROUP BY touched.recall_id
)
UPDATE recalls SET shown = counted.shown FROM counted WHERE recalls.recall_id = counted.recall_id;
