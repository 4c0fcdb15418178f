-- One row a request to a model that was made for a run: what it spent. kind is generator, which is asked for programs, or memory: the
-- memory model, which is asked for the summary of a program that a prompt shows. A request that was turned away spent nothing.
--
-- unknown_tokens and unknown_costs are 1 for a request that may have spent something that nobody knows: without a count of tokens or
-- a price, or with a count that cannot be right. What is known of it is in tokens and cost_usd.
SELECT run_id,
       attempt_id,
       kind,
       tokens_prompt + tokens_completion                                                                  AS tokens,
       CAST(has_spent AND (tokens_prompt + tokens_completion IS NULL OR is_wrong) AS BIGINT)              AS unknown_tokens,
       cost_usd,
       CAST(has_spent AND (cost_usd IS NULL OR is_wrong) AS BIGINT)                                       AS unknown_costs,
       model_seconds
FROM (
  SELECT run_id, attempt_id, 'generator' AS kind, tokens_prompt, tokens_completion, cost_usd,
         usage_problem IS NOT NULL                                               AS is_wrong,
         NOT cached AND (response IS NOT NULL OR coalesce(booked_tokens, 1) > 0) AS has_spent,
         (arrow_cast(finished_at, 'Int64') - arrow_cast(started_at, 'Int64')) / 1e6 AS model_seconds
  FROM evo.generations
  WHERE run_id IS NOT NULL
  UNION ALL
  SELECT run_id, attempt_id, 'memory', tokens_prompt, tokens_completion, cost_usd, FALSE, coalesce(source, 'model') <> 'cache',
         model_seconds
  FROM evo.summaries
  WHERE run_id IS NOT NULL) requests
