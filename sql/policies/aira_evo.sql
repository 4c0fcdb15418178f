-- Score only: among the admitted nodes of each island, parents are drawn by a softmax over the validation score, normalised over all
-- good nodes of the run.
--
-- Failures, drafts and crossovers as in openmle_evo.
WITH normalised AS (
  SELECT node_id, island, admitted, minmax_norm(signed_score) OVER () AS quality
  FROM run.candidates),
scores AS (
  SELECT n.node_id, n.island, n.quality, s.selection_temperature AS temperature
  FROM run.settings s CROSS JOIN normalised n
  WHERE n.admitted)
SELECT o.operator,
       o.operator_weight,
       q.node_id AS parent_id,
       softmax(q.quality, q.temperature) OVER (PARTITION BY o.operator, q.island) AS weight,
       1 AS priority
FROM run.operators o CROSS JOIN scores q
WHERE o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1 FROM run.operators WHERE arity = 0
UNION ALL SELECT * FROM run.repairs
UNION ALL SELECT * FROM run.drafts
