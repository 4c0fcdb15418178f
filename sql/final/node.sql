-- A node by its id. Parameter: $node.
SELECT node_id, code, seed FROM evo.nodes WHERE node_id = $node
