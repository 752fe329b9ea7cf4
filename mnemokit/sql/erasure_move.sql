-- Every version of a cut lineage stands where it was moved to.
UPDATE reasonlets
SET root_id = moved.root_id,
    depth = moved.depth,
    parent_id = CASE WHEN moved.depth = 0 THEN NULL ELSE reasonlets.parent_id END,
    parent_no = CASE WHEN moved.depth = 0 THEN NULL ELSE reasonlets.parent_no END
FROM moved
WHERE reasonlets.reasonlet_id = moved.reasonlet_id;
