SELECT reasonlet.seq, reasonlet.question
FROM reasonlets AS reasonlet
ANTI JOIN (SELECT seq FROM vectors WHERE embedder = $embedder) AS embedded USING (seq)
WHERE reasonlet.scope = $scope AND reasonlet.question IS NOT NULL
ORDER BY reasonlet.seq;
