-- One row a repeat, modality, policy and model of a suite: shares of its tasks.
-- Parameters: $suite.
SELECT repeat, modality, policy, model, tasks, valid, valid_rate, medal_rate, gold, silver, bronze, mean_human_rank,
       tokens, cost_usd, sandbox_seconds
FROM bench.by_repeat
WHERE suite_id = $suite
ORDER BY repeat, modality, policy, model
