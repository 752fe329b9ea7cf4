-- What may be shown, as of a time: whatever is similar enough. Part of a WITH.
candidates AS (
    SELECT seq, similarity
    FROM similarities
    WHERE similarity >= $min_similarity
),
