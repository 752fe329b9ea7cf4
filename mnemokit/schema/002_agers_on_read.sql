-- An ager used to rewrite every live record. Exponential decay composes, so that a record can keep the weight of its last
-- passing, and what the agers since then made of it is worked out where it is read: the view says what the table said.
-- The ager instants are facts in ager_runs; only what an ager ends is written.
DROP VIEW v_mnestoma;

ALTER TABLE mnests RENAME TO mnest_records;

-- Agers up to this one did not concern the record: it was not live then, and was made live by hand later.
ALTER TABLE mnest_records ADD COLUMN aged_until TIMESTAMPTZ;

UPDATE mnest_records
SET aged_until = tick.newest
FROM (SELECT max(ts_ager) AS newest FROM ager_runs) AS tick
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < tick.newest;

CREATE VIEW mnests AS
WITH standing AS (
    SELECT *, tick.newest,
           coalesce(
               state IN ('active', 'proto') AND NOT untimed
               AND greatest(ts_last, aged_until) < tick.newest,
               FALSE
           ) AS aged
    FROM mnest_records
    CROSS JOIN (SELECT max(ts_ager) AS newest FROM ager_runs) AS tick
)
SELECT mnest_id, src_executor, src_version, dst_executor, dst_version,
       CASE WHEN aged THEN weight * exp(-decay_lambda * (epoch_us(newest) - epoch_us(ts_last)) / 86400000000.0)
            ELSE weight
       END AS weight,
       uses, ts_first, CASE WHEN aged THEN newest ELSE ts_last END AS ts_last, ts_used, decay_lambda, state, tags,
       desired_sig, untimed, mnest_no, edge_no
FROM standing;

CREATE VIEW v_mnestoma AS
SELECT * FROM mnests WHERE state IN ('active', 'proto');
