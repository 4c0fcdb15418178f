SELECT p.operator, p.parent_id, n.step, round(n.score, 4) AS score, n.method_family, round(p.weight, 4) AS weight
FROM policies.openmle_evo p JOIN run.nodes n ON n.node_id = p.parent_id
ORDER BY weight DESC
LIMIT 5
