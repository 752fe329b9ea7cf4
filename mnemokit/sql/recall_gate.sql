-- What may be shown, as of a time: whatever is similar enough. Part of a WITH. The others stand there for being parents.
-- The gate is rounded as the similarities are.
reasonlets AS (
    SELECT reasonlet.*,
           CASE WHEN found.similarity >= round(1e12 * $min_similarity) / 1e12 THEN found.similarity END AS similarity
    FROM main.reasonlets AS reasonlet
    LEFT JOIN similarities AS found ON found.seq = reasonlet.seq
    WHERE reasonlet.scope = $scope
),
