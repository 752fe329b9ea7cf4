-- The rows of the reasonlets in among; after rank_among.sql and rank_counted.sql.
standing AS (
    SELECT reasonlet.seq AS reasonlet_no, coalesce(counted.n, 0) AS n, coalesce(counted.s, 0) AS s
    FROM reasonlets AS reasonlet
    SEMI JOIN among USING (seq)
    LEFT JOIN counted ON counted.reasonlet_no = reasonlet.seq
)
SELECT reasonlet_no, n, s FROM standing ORDER BY reasonlet_no;
