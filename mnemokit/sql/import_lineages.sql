-- A lineage's high-water mark never falls.
INSERT INTO lineages
SELECT given.root_id, given.high_water
FROM new_lineages AS given
SEMI JOIN reasonlets ON reasonlets.reasonlet_id = given.root_id
ON CONFLICT DO UPDATE SET high_water = greatest(lineages.high_water, excluded.high_water);
