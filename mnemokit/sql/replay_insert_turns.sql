-- fresh has every canonical column, and of the others (hashed values, the reader) only those that are not empty.
INSERT INTO turns BY NAME
SELECT *
FROM fresh;
