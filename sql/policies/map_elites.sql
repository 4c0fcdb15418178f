-- MAP-Elites over method families: the best node of every family is a parent, all families alike.
--
-- Failures, drafts and crossovers as in openmle_evo.
WITH elites AS (
  SELECT node_id, row_number() OVER (PARTITION BY method_family ORDER BY signed_score DESC, step) AS place
  FROM run.candidates)
SELECT o.operator,
       o.operator_weight,
       e.node_id AS parent_id,
       1.0       AS weight,
       1         AS priority
FROM run.operators o CROSS JOIN elites e
WHERE e.place = 1 AND o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1 FROM run.operators WHERE arity = 0
UNION ALL SELECT * FROM run.repairs
UNION ALL SELECT * FROM run.drafts
