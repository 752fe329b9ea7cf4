INSERT INTO recalls BY NAME
SELECT given.*, (SELECT count(*) FROM recall_rows AS shown WHERE shown.recall_id = given.recall_id)::INTEGER AS shown
FROM new_recalls AS given;
