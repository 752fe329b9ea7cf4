INSERT INTO feedback BY NAME
SELECT given.*, run.seq AS run_no, run.reasonlet_no
FROM new_feedback AS given
JOIN runs AS run ON run.run_id = given.run_id;
