INSERT INTO runs BY NAME
SELECT given.*, reasonlet.seq AS reasonlet_no
FROM new_runs AS given
JOIN reasonlets AS reasonlet ON reasonlet.reasonlet_id = given.reasonlet_id;
