-- One row an operator that makes new programs from nothing or from good parents, with its share of the choices.
--
-- arity is the number of parents. A crossover is allowed from generation crossover_after on, when two nodes are good;
-- a fresh draft takes its share first.
WITH chances AS (
  SELECT s.fresh_draft_probability AS draft,
         CASE WHEN p.generation >= s.crossover_after AND p.good > 1 THEN s.crossover_probability ELSE 0 END AS crossover
  FROM run.settings s CROSS JOIN run.progress p)
SELECT operator, arity, operator_weight
FROM (
  SELECT o.operator,
         o.arity,
         CASE o.operator
           WHEN 'draft'   THEN draft
           WHEN 'improve' THEN (1 - draft) * (1 - crossover)
           ELSE                (1 - draft) * crossover
         END AS operator_weight
  FROM chances CROSS JOIN (VALUES ('draft', 0), ('improve', 1), ('crossover', 2)) AS o (operator, arity)) shares
WHERE operator_weight > 0
