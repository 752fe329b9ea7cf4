-- Whoever was ever forgotten, among the people of these writes.
SELECT person.name, tombstone.ts_readmitted
FROM people AS person
JOIN tombstones AS tombstone ON tombstone.name_hash = person.name_hash AND tombstone.realm = $realm
ORDER BY person.name;
