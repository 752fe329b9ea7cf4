-- What a session that goes on must be derived from, beside its structure. No text: a value stands here as a 64-bit hash that
-- is keyed by its session, and only where the policy for passings looks at values. Both lists are null where nothing was
-- hashed, and go with the person or scope that is erased.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS arg_values UBIGINT[];
ALTER TABLE turns ADD COLUMN IF NOT EXISTS result_values UBIGINT[];

-- The format whose policies the row goes by; null where that is its source.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS reader VARCHAR;
