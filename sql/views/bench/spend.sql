-- One row an attempt of a run that asked a model: what its requests spent, those to the memory model for its prompt included. A request
-- that was turned away spent nothing.
--
-- unknown_tokens and unknown_costs count requests that may have spent something that nobody knows: without a count of tokens or
-- a price, or with a count that cannot be right. What is known of them is in tokens and cost_usd.
SELECT run_id,
       attempt_id,
       CAST(sum(tokens_prompt + tokens_completion) AS BIGINT)                                       AS tokens,
       count(*) FILTER (WHERE has_spent AND (tokens_prompt + tokens_completion IS NULL OR is_wrong)) AS unknown_tokens,
       sum(cost_usd)                                                                                AS cost_usd,
       count(*) FILTER (WHERE has_spent AND (cost_usd IS NULL OR is_wrong))                         AS unknown_costs
FROM (
  SELECT run_id, attempt_id, tokens_prompt, tokens_completion, cost_usd,
         usage_problem IS NOT NULL                                               AS is_wrong,
         NOT cached AND (response IS NOT NULL OR coalesce(booked_tokens, 1) > 0) AS has_spent
  FROM evo.generations
  WHERE run_id IS NOT NULL
  UNION ALL
  SELECT run_id, attempt_id, tokens_prompt, tokens_completion, cost_usd, FALSE, coalesce(source, 'model') <> 'cache'
  FROM evo.summaries
  WHERE run_id IS NOT NULL) requests
GROUP BY run_id, attempt_id
