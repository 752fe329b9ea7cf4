-- How many rows each shows is counted when they all stand: shown_counts_anew.sql.
INSERT INTO recalls BY NAME
SELECT given.*, 0 AS shown
FROM new_recalls AS given;
