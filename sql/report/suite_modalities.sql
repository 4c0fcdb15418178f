-- One row a modality, policy and model of a suite: rates over its tasks, as mean and standard deviation over the repeats.
-- Parameters: $suite.
SELECT modality, policy, model, tasks, repeats, runs, mean_valid_rate, std_valid_rate, mean_medal_rate, std_medal_rate, mean_gold_rate,
       mean_human_rank, std_human_rank, gold, silver, bronze, tokens, cost_usd, sandbox_seconds,
       CAST(round(tokens_per_medal) AS BIGINT) AS tokens_per_medal, usd_per_medal
FROM bench.by_modality
WHERE suite_id = $suite
ORDER BY modality, policy, model
