UPDATE edges
SET ts_acted = greatest(lent_acts.ts, coalesce(edges.ts_acted, lent_acts.ts))
FROM lent_acts
WHERE edges.edge_no = lent_acts.edge_no
