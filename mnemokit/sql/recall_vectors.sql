-- How similar the questions of a scope are to the one asked, by the cosine of their vectors; opposed ones are not found.
-- Part of a WITH. In doubles and rounded, equal vectors have the cosine 1 and pass every gate.
known AS (
    SELECT seq, vector FROM vectors WHERE embedder = $embedder
    UNION ALL
    SELECT seq, vector FROM more_vectors
),
compared AS (
    SELECT reasonlet.seq,
           round(1e12 * list_cosine_similarity(known.vector::DOUBLE[], $asked::FLOAT[]::DOUBLE[])) / 1e12 AS similarity
    FROM main.reasonlets AS reasonlet
    JOIN known ON known.seq = reasonlet.seq
    WHERE reasonlet.scope = $scope AND reasonlet.ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
similarities AS (
    SELECT seq, least(1, similarity) AS similarity
    FROM compared
    WHERE similarity > 0 AND NOT isnan(similarity)
),
