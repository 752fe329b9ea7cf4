-- What an ager demotes keeps its row too: only the instant is written, and the view works out the rest. One column of
-- scattered rows is quick to write; the whole rows written anew took an ager most of its night.
DROP VIEW v_mnestoma;

DROP VIEW mnests;

-- The ager that made an active record a decaying one; state, weight and ts_last are those of before.
ALTER TABLE mnest_records ADD COLUMN ts_demoted TIMESTAMPTZ;

CREATE VIEW mnests AS
WITH standing AS (
    SELECT *,
           CASE
               WHEN ts_demoted IS NOT NULL THEN ts_demoted
               WHEN state IN ('active', 'proto') AND NOT untimed AND greatest(ts_last, aged_until) < tick.newest
                   THEN tick.newest
           END AS ts_aged
    FROM mnest_records
    CROSS JOIN (SELECT max(ts_ager) AS newest FROM ager_runs) AS tick
)
SELECT mnest_id, src_executor, src_version, dst_executor, dst_version,
       CASE WHEN ts_aged IS NULL THEN weight
            ELSE weight * exp(-decay_lambda * (epoch_us(ts_aged) - epoch_us(ts_last)) / 86400000000.0)
       END AS weight,
       uses, ts_first, coalesce(ts_aged, ts_last) AS ts_last, ts_used, decay_lambda,
       CASE WHEN ts_demoted IS NULL THEN state ELSE 'decaying' END AS state, tags, desired_sig, untimed, mnest_no,
       edge_no
FROM standing;

CREATE VIEW v_mnestoma AS
SELECT * FROM mnests WHERE state IN ('active', 'proto');
