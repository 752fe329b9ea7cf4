-- Bring every live record up to date.
UPDATE mnests
SET weight = weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0),
    ts_last = $now
WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now
