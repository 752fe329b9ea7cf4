-- An ager demotes the lent records. Nothing but the instant is written: the view mnests works out the rest.
UPDATE mnest_records
SET ts_demoted = $now
WHERE mnest_no IN (SELECT mnest_no FROM lent_records)
