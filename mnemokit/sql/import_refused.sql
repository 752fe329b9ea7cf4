-- Writes that must not be made: about a person who was forgotten when the log was written or later (a write without a
-- time may be as old as that), or built, however far, on one that must not be made or on a trace that is gone for good.
WITH RECURSIVE refused (place) AS (
    SELECT person.place
    FROM people AS person
    JOIN tombs ON tombs.name = person.name
    JOIN writes ON writes.place = person.place
    WHERE tombs.ts_readmitted IS NULL OR writes.ts IS NULL OR writes.ts < tombs.ts_readmitted
    UNION
    SELECT link.place
    FROM links AS link
    WHERE link.parent_place IS NULL AND link.parent_id IS NOT NULL
      AND link.parent_id NOT IN (SELECT trace_id FROM change_traces WHERE counts)
    UNION
    SELECT link.place
    FROM refused
    JOIN links AS link ON link.parent_place = refused.place
)
SELECT place
FROM refused
ORDER BY place;
