-- What a model's answers took, in all runs: those that it wrote itself and whose tokens are known. EXPLAIN of an EXPAND tells it.
-- Parameters: $model.
SELECT CAST(avg(tokens_prompt) AS BIGINT)      AS tokens_prompt,
       CAST(avg(tokens_completion) AS BIGINT)  AS tokens_completion,
       avg(cost_usd)                           AS cost_usd,
       avg(seconds)                            AS model_seconds,
       sum(tokens_completion) / sum(seconds)   AS tokens_per_second
FROM (
    SELECT tokens_prompt, tokens_completion, cost_usd,
           (arrow_cast(finished_at, 'Int64') - arrow_cast(started_at, 'Int64')) / 1e6 AS seconds
    FROM evo.generations
    WHERE model = $model AND NOT cached AND tokens_completion > 0 AND usage_problem IS NULL AND finished_at > started_at
)
