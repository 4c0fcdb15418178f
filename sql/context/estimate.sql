-- One row an operator: what its programs took on average with a model, in all runs. EXPLAIN of an EXPAND tells it.
-- Parameters: $model.
SELECT operator,
       CAST(avg(tokens_prompt) AS BIGINT)      AS tokens_prompt,
       CAST(avg(tokens_completion) AS BIGINT)  AS tokens_completion,
       avg(cost_usd)                           AS cost_usd,
       avg(model_seconds)                      AS model_seconds,
       avg(sandbox_seconds)                    AS sandbox_seconds
FROM evo.nodes
WHERE model = $model
GROUP BY operator
