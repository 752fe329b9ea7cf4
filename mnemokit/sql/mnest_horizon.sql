-- The newest instant that any record lived through, agers aside.
SELECT greatest((SELECT max(ts_used) FROM mnests), (SELECT max(ts_acted) FROM edges)) AS horizon
