-- How similar the questions of a scope are to the one asked: BM25(asked, found) / BM25(asked, asked), clipped to 1. Part
-- of a WITH. A term that no question has counts in the denominator, so that similarities can be compared across questions.
-- The terms are added up in any order, so that only 12 digits mean something: rounded to them (round(x, 12) is slower), a
-- question asked in its own words is 1 and passes every gate.
-- The factor k1 + 1 of every term cancels. Only questions that share a term are found. Terms are joined by their number
-- in the question asked, once they are found.
asked AS (
    SELECT unnest($terms::VARCHAR[]) AS term, unnest($occurrences::BIGINT[]) AS occurrences,
           unnest(range(len($terms::VARCHAR[]))) AS no
),
corpus AS (
    SELECT count(*) AS questions, avg(terms) AS mean_terms
    FROM question_lengths
    WHERE scope = $scope AND ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
hits AS (
    SELECT asked.no, posting.occurrences, posting.seq, posting.terms
    FROM postings AS posting
    JOIN asked ON asked.term = posting.term
    WHERE posting.scope = $scope AND posting.ts_captured <= coalesce($at, TIMESTAMPTZ 'infinity')
),
hits_per_term AS (
    SELECT no, count(*) AS questions
    FROM hits
    GROUP BY no
),
term_weights AS (
    SELECT asked.no, asked.occurrences, corpus.mean_terms,
           asked.occurrences * ln(1 + (corpus.questions - coalesce(hit.questions, 0) + 0.5::DOUBLE)
                                      / (coalesce(hit.questions, 0) + 0.5::DOUBLE)) AS weight
    FROM asked
    CROSS JOIN corpus
    LEFT JOIN hits_per_term AS hit ON hit.no = asked.no
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
    JOIN term_weights AS term ON term.no = hit.no
    GROUP BY hit.seq
),
similarities AS (
    SELECT scores.seq, least(1, round(1e12 * scores.score / asked_itself.score) / 1e12) AS similarity
    FROM scores
    CROSS JOIN asked_itself
),
