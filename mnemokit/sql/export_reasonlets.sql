-- The reasonlets of a scope or of a lineage, in the order of their arrival.
SELECT reasonlet_id, parent_id, version, scope, question, subject, graph, graph_hash, provenance, ts_captured, untimed,
       source
FROM reasonlets
WHERE scope = $scope OR root_id = $root_id
ORDER BY seq;
