SELECT lineage.root_id AS reasonlet_id, lineage.high_water
FROM lineages AS lineage
JOIN reasonlets AS root ON root.reasonlet_id = lineage.root_id
SEMI JOIN exported ON exported.reasonlet_id = lineage.root_id
ORDER BY root.seq;
