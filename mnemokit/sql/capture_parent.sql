SELECT reasonlet.reasonlet_id, reasonlet.seq, reasonlet.version, reasonlet.scope, reasonlet.graph_hash, reasonlet.root_id,
       reasonlet.depth, lineage.high_water
FROM reasonlets AS reasonlet
JOIN lineages AS lineage ON lineage.root_id = reasonlet.root_id
WHERE reasonlet.reasonlet_id = $parent_id;
