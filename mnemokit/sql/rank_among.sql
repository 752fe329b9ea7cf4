-- Only the reasonlets in the relation among, and their parents: these stand in place of the whole tables. Part of a WITH.
wanted AS (
    SELECT seq FROM among
    UNION
    SELECT reasonlet.parent_no AS seq FROM main.reasonlets AS reasonlet SEMI JOIN among USING (seq)
),
reasonlets AS (
    SELECT * FROM main.reasonlets SEMI JOIN wanted USING (seq)
),
runs AS (
    SELECT run.seq, run.reasonlet_no, run.outcome, run.ts_run
    FROM main.runs AS run
    SEMI JOIN wanted ON wanted.seq = run.reasonlet_no
),
feedback AS (
    SELECT verdict.* FROM main.feedback AS verdict SEMI JOIN wanted ON wanted.seq = verdict.reasonlet_no
),
