-- Quality, progress and novelty: a good parent scores high, gained on its own parent, and has a rare method.
--
-- A fresh failure is debugged at once; then the first drafts are made; then parents are drawn by a softmax over their
-- utility among the admitted nodes of each island and its visitors.
WITH utilities AS (
  SELECT c.island,
         c.node_id,
         s.selection_temperature                                                            AS temperature,
         s.quality_weight  * minmax_norm(c.signed_score) OVER ()
       + s.progress_weight * COALESCE(positive_delta_norm(c.delta_vs_parent) OVER (), 0)
       + s.novelty_weight  * novelty(c.family_count_before)                                 AS utility
  FROM run.settings s CROSS JOIN run.island_pool c
  WHERE c.admitted),
weights AS (
  SELECT island, node_id, softmax(utility, temperature) OVER (PARTITION BY island) AS weight FROM utilities)
SELECT o.operator, o.operator_weight, w.node_id AS parent_id, w.weight, 1 AS priority, w.island
FROM run.operators o CROSS JOIN weights w
WHERE o.arity > 0
UNION ALL SELECT operator, operator_weight, NULL, 1, 1, NULL FROM run.operators WHERE arity = 0
UNION ALL SELECT *, NULL FROM run.repairs
UNION ALL SELECT *, NULL FROM run.drafts
