-- One row an operator of a run: what it made, what it gained, and what all requests for it cost, also those that no program came of;
-- then one of the memory model, where it was asked, and one of all. kind is operator, memory or total. Unknown tokens and costs stay
-- NULL.
-- Parameters: $run.
WITH made AS (
  SELECT n.operator,
         count(*)                                       AS programs,
         count(*) FILTER (WHERE n.is_buggy)             AS failed,
         count(*) FILTER (WHERE n.delta_vs_parent > 0)  AS gains,
         count(*) FILTER (WHERE h.is_incumbent)         AS new_bests,
         avg(n.delta_vs_parent)                         AS mean_gain,
         max(n.delta_vs_parent)                         AS largest_gain,
         first_value(n.score ORDER BY h.signed_score DESC NULLS LAST, n.step) FILTER (WHERE NOT n.is_buggy) AS best_score,
         sum(n.sandbox_seconds)                         AS sandbox_seconds
  FROM evo.nodes n
  JOIN evo.board_score_history h ON h.node_id = n.node_id AND h.run_id = $run
  WHERE n.run_id = $run
  GROUP BY n.operator),
requests AS (
  SELECT r.kind, a.operator, count(*) AS requests, sum(r.tokens) AS tokens, sum(r.cost_usd) AS cost_usd, sum(r.model_seconds) AS model_seconds
  FROM bench.requests r
  LEFT JOIN evo.attempts a ON a.attempt_id = r.attempt_id AND a.run_id = $run
  WHERE r.run_id = $run
  GROUP BY r.kind, a.operator),
parts AS (
  SELECT 'operator' AS kind, coalesce(m.operator, q.operator) AS operator,
         coalesce(m.programs, 0) AS programs, coalesce(m.failed, 0) AS failed, coalesce(m.gains, 0) AS gains,
         coalesce(m.new_bests, 0) AS new_bests, m.mean_gain, m.largest_gain, m.best_score, m.sandbox_seconds,
         coalesce(q.requests, 0) AS requests, q.tokens, q.cost_usd, q.model_seconds
  FROM made m
  FULL JOIN (SELECT * FROM requests WHERE kind = 'generator' AND operator IS NOT NULL) q ON q.operator = m.operator
  UNION ALL
  SELECT 'memory', 'memory model', 0, 0, 0, 0, NULL, NULL, NULL, NULL, sum(requests), sum(tokens), sum(cost_usd), sum(model_seconds)
  FROM requests
  WHERE kind = 'memory'
  GROUP BY kind)
SELECT kind, operator, programs, failed, gains, new_bests, mean_gain, largest_gain, best_score, sandbox_seconds, requests, tokens, cost_usd,
       model_seconds
FROM parts
UNION ALL
SELECT 'total', 'all', coalesce(sum(programs), 0), coalesce(sum(failed), 0), coalesce(sum(gains), 0), coalesce(sum(new_bests), 0), NULL,
       max(largest_gain), NULL, sum(sandbox_seconds), coalesce(sum(requests), 0), sum(tokens), sum(cost_usd), sum(model_seconds)
FROM parts
ORDER BY CASE kind WHEN 'operator' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, programs DESC, operator
