-- One row a task, policy and model of a suite: its repeats as mean and standard deviation.
-- Parameters: $suite.
SELECT b.task_id, b.policy, b.model, b.metric, b.higher_is_better, b.runs, b.ended, b.valid,
       b.mean_validation_score, b.std_validation_score, b.mean_test_score, b.std_test_score, b.best_test_score,
       b.mean_human_rank, b.std_human_rank, b.gold, b.silver, b.bronze, b.medal_rate,
       b.tokens, b.unknown_tokens, b.cost_usd, b.unknown_costs, b.sandbox_seconds
FROM bench.by_task b
JOIN bench.suites q ON q.suite_id = b.suite_id
WHERE b.suite_id = $suite
ORDER BY array_position(q.tasks, b.task_id), b.policy, b.model
