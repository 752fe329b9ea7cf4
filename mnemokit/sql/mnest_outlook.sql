-- Protos wanted again and again, and decaying records so weak and so long unused that they could be archived.
SELECT count(*) FILTER (state = 'proto' AND uses >= $recurring_uses AND weight >= $recurring_floor) AS recurring_protos,
       count(*) FILTER (
           state = 'decaying'
           AND epoch_us($now) - epoch_us(ts_used) >= $archive_us
           AND CASE WHEN untimed THEN weight
                    ELSE weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)
               END < $archive_floor
       ) AS proposed_archive
FROM mnests
WHERE state IN ('proto', 'decaying')
