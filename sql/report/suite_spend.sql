-- One row a kind of model that the searches of a suite asked, and one of all: what its requests spent, as in bench.spend. kind is
-- generator, memory or total.
-- Parameters: $suite.
WITH spent AS (
  SELECT r.kind, count(*) AS requests, sum(r.tokens) AS tokens, sum(r.unknown_tokens) AS unknown_tokens, sum(r.cost_usd) AS cost_usd,
         sum(r.unknown_costs) AS unknown_costs, sum(r.model_seconds) AS model_seconds
  FROM bench.requests r
  JOIN bench.suite_runs s ON s.run_id = r.run_id
  WHERE s.suite_id = $suite
  GROUP BY r.kind)
SELECT kind, requests, tokens, unknown_tokens, cost_usd, unknown_costs, model_seconds FROM spent
UNION ALL
SELECT 'total', coalesce(sum(requests), 0), sum(tokens), coalesce(sum(unknown_tokens), 0), sum(cost_usd), coalesce(sum(unknown_costs), 0),
       sum(model_seconds)
FROM spent
ORDER BY CASE kind WHEN 'generator' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END
