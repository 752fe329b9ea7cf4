-- What the lent records were before an ager ended them.
DELETE FROM mnest_records
WHERE state = 'active' AND mnest_no IN (SELECT mnest_no FROM lent_records)
