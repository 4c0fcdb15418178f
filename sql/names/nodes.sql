-- Nodes that a name may mean, with what they are.
SELECT node_id AS id,
       concat('step ', step, ', ', operator, ', ', status) AS what
FROM evo.nodes
