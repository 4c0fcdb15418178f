-- Score only: among the admitted nodes of each island and its visitors, parents are drawn by a softmax over the validation score,
-- normalised over all good nodes of the run.
--
-- Failures, drafts and crossovers as in openmle_evo.
WITH normalised AS (
  SELECT node_id, island, admitted, minmax_norm(signed_score) OVER () AS quality
  FROM run.island_pool),
weights AS (
  SELECT n.island, n.node_id, softmax(n.quality, s.selection_temperature) OVER (PARTITION BY n.island) AS weight
  FROM run.settings s CROSS JOIN normalised n
  WHERE n.admitted)
SELECT o.operator, o.operator_weight, w.node_id AS parent_id, w.weight, 1 AS priority, w.island
FROM run.operators o CROSS JOIN weights w
WHERE o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1, NULL FROM run.operators WHERE arity = 0
UNION ALL SELECT *, NULL FROM run.repairs
UNION ALL SELECT *, NULL FROM run.drafts
