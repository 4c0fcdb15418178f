-- Fitness: exploit (the score) + explore (how much the scores of its children differ) + cooling (how seldom it was used).
--
-- Each term is normalised to 0..1 over the good nodes. A node whose children's variance is not known counts 0.5 there.
-- Parents are drawn in proportion to their fitness. Failures, drafts and crossovers as in openmle_evo.
WITH visits AS (
  SELECT n.node_id,
         n.signed_score,
         c.variance,
         1 - COALESCE(c.children, 0) / CAST(NULLIF(max(c.children) OVER (), 0) AS DOUBLE) AS cooling
  FROM run.candidates n LEFT JOIN run.children c ON c.node_id = n.node_id),
fitness AS (
  SELECT node_id,
         minmax_norm(signed_score) OVER ()
       + COALESCE(minmax_norm(variance) OVER (), 0.5)
       + COALESCE(minmax_norm(cooling) OVER (), 0.5) AS fitness
  FROM visits)
SELECT o.operator,
       o.operator_weight,
       f.node_id AS parent_id,
       f.fitness AS weight,
       1         AS priority
FROM run.operators o CROSS JOIN fitness f
WHERE o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1 FROM run.operators WHERE arity = 0
UNION ALL SELECT * FROM run.repairs
UNION ALL SELECT * FROM run.drafts
