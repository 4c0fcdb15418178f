-- Score only: parents are drawn by a softmax over the normalised validation score of each island.
--
-- Failures, drafts and crossovers as in openmle_evo.
WITH scores AS (
  SELECT c.node_id,
         c.island,
         s.selection_temperature               AS temperature,
         minmax_norm(c.signed_score) OVER ()   AS quality
  FROM run.settings s CROSS JOIN run.candidates c
  WHERE c.admitted)
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
