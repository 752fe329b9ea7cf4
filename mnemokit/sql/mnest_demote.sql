-- An ager ends the lent records: here they are as they begin to decay. (Written anew, and the old rows then deleted: an
-- UPDATE of rows all over the table takes DuckDB longer to commit.)
INSERT INTO mnest_records BY NAME
SELECT record.* REPLACE ('decaying' AS state, lent.weight AS weight, lent.ts AS ts_last)
FROM mnest_records AS record
JOIN lent_records AS lent ON lent.mnest_no = record.mnest_no
