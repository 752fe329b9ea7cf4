-- Protos wanted again and again, and decaying records so weak and so long unused that they could be archived. (Counts of
-- one state each: DuckDB looks only into the segments that have it. A record that an ager demoted has decayed in two
-- steps, up to that ager and from it, and its weight is worked out so too.)
SELECT (
    SELECT count(*)
    FROM mnest_records
    WHERE state = 'proto'
      AND uses >= $recurring_uses
      AND CASE WHEN untimed OR ts_last >= $now THEN weight
               ELSE weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
          END >= $recurring_floor
) AS recurring_protos, (
    SELECT count(*)
    FROM mnest_records
    WHERE state = 'decaying'
      AND ts_used <= $unused_since
      AND CASE WHEN untimed THEN weight
               ELSE weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
          END < $archive_floor
) + (
    SELECT count(*)
    FROM mnest_records
    WHERE ts_demoted IS NOT NULL
      AND ts_used <= $unused_since
      AND weight * exp(-decay_lambda * (epoch_us(ts_demoted) - epoch_us(ts_last)) / 86400000000.0)
          * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_demoted)) / 86400000000.0) < $archive_floor
) AS proposed_archive
