-- What may be shown, as of a time: whatever is similar enough. Part of a WITH. The others stand there for being parents.
reasonlets AS (
    SELECT reasonlet.*, CASE WHEN found.similarity >= $min_similarity THEN found.similarity END AS similarity
    FROM main.reasonlets AS reasonlet
    LEFT JOIN similarities AS found ON found.seq = reasonlet.seq
    WHERE reasonlet.scope = $scope
),
