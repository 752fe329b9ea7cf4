SELECT reasonlet_id, parent_id, root_id, version, depth, scope, question, subject, graph, graph_hash, provenance, ts_captured,
       untimed, source
FROM reasonlets
WHERE reasonlet_id = $reasonlet_id;
