WITH RECURSIVE path AS (
  SELECT * FROM run.nodes WHERE node_id = (SELECT node_id FROM run.nodes ORDER BY signed_score DESC NULLS LAST, step LIMIT 1)
  UNION ALL
  SELECT n.* FROM run.nodes n JOIN path p ON n.node_id = p.parent_id)
SELECT step, operator, method_family, round(score, 4) AS score, round(delta_vs_parent, 4) AS gain
FROM path
ORDER BY step
