-- How similar the questions of a scope are to the one asked: BM25(asked, found) / BM25(asked, asked), clipped to 1. Part
-- of a WITH. A term that no question has counts in the denominator, so that similarities can be compared across questions.
-- The terms are added up in any order, so that only 12 digits mean something: rounded to them (round(x, 12) is slower), a
-- question asked in its own words is 1 and passes every gate.
-- The factor k1 + 1 of every term cancels. Only questions that share a term are found.
asked AS (
    SELECT unnest($terms::VARCHAR[]) AS term, unnest($occurrences::BIGINT[]) AS occurrences
),
corpus AS (
    SELECT count(*) AS questions, avg(terms) AS mean_terms
    FROM question_lengths
    WHERE scope = $scope AND ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
hits AS (
    SELECT term, occurrences, seq, terms
    FROM postings
    WHERE scope = $scope AND ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
      AND term IN (SELECT term FROM asked)
),
hits_per_term AS (
    SELECT term, count(*) AS questions
    FROM hits
    GROUP BY term
),
term_weights AS (
    SELECT asked.term, asked.occurrences, corpus.mean_terms,
           asked.occurrences * ln(1 + (corpus.questions - coalesce(hit.questions, 0) + 0.5::DOUBLE)
                                      / (coalesce(hit.questions, 0) + 0.5::DOUBLE)) AS weight
    FROM asked
    CROSS JOIN corpus
    LEFT JOIN hits_per_term AS hit ON hit.term = asked.term
),
asked_itself AS (
    SELECT sum(weight * occurrences / (occurrences + $k1 * (1 - $b + $b * $length / mean_terms))) AS score
    FROM term_weights
),
scores AS (
    SELECT hit.seq,
           sum(term.weight * hit.occurrences
               / (hit.occurrences + $k1 * (1 - $b + $b * hit.terms / term.mean_terms))) AS score
    FROM hits AS hit
    JOIN term_weights AS term ON term.term = hit.term
    GROUP BY hit.seq
),
similarities AS (
    SELECT scores.seq, least(1, round(1e12 * scores.score / asked_itself.score) / 1e12) AS similarity
    FROM scores
    CROSS JOIN asked_itself
),
