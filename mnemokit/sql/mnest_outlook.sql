-- Protos wanted again and again, and decaying records so weak and so long unused that they could be archived. (Two
-- counts with one state each: DuckDB looks only into the segments that have it.)
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
) AS proposed_archive
