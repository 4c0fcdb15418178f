-- One row a search of a suite and program that was the best so far: its score over steps and cumulative sandbox time, and how far its
-- search went. number is as in suite_searches.sql.
-- Parameters: $suite.
SELECT s.number, s.task_id, s.repeat, s.seed, t.metric, t.higher_is_better,
       c.step, c.sandbox_seconds, c.validation_score AS score, e.last_step, e.last_seconds
FROM (
  SELECT CAST(row_number() OVER (ORDER BY array_position(q.tasks, p.task_id), p.repeat) AS BIGINT) AS number, p.run_id, p.task_id, p.repeat, p.seed
  FROM bench.suite_runs p
  JOIN bench.suites q ON q.suite_id = p.suite_id
  WHERE p.suite_id = $suite) s
JOIN gym.tasks t ON t.task_id = s.task_id
JOIN bench.medal_curve c ON c.run_id = s.run_id AND c.task_id = s.task_id
JOIN (
  SELECT run_id, max(step) AS last_step, sum(coalesce(sandbox_seconds, 0)) AS last_seconds FROM evo.nodes GROUP BY run_id) e
  ON e.run_id = s.run_id
ORDER BY s.number, c.step
