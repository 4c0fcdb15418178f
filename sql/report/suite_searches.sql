-- One row a search of a suite, by task and repeat: where it stands, what came of it, and whether the page has a part about it.
--
-- number is its place in this order, by which the page names it. Parts are given to the best search of each task, then to the second
-- best of each, and so on, as long as their programs are at most $programs in all; of one search at most $each are shown. The grade
-- on the hidden test comes before the validation score.
-- Parameters: $suite, $programs, $each.
WITH searches AS (
  SELECT CAST(row_number() OVER (ORDER BY array_position(q.tasks, p.task_id), p.repeat) AS BIGINT) AS number,
         p.task_id, p.repeat, p.run_id, p.seed, coalesce(r.policy, q.policy) AS policy, coalesce(r.model, q.model) AS model,
         p.status, p.stop_reason, p.steps, p.steps_limit, t.metric, t.higher_is_better,
         p.validation_score, p.valid, p.test_score, p.medal, p.rank, p.teams, p.human_rank, r.selection,
         p.tokens, p.cost_usd, p.sandbox_seconds,
         truncate_middle(p.error, 1200, 580) AS error,
         p.steps > 0 AND t.task_id IS NOT NULL AS has_programs,
         CASE WHEN t.higher_is_better THEN 1.0 ELSE -1.0 END AS sign
  FROM bench.suite_progress p
  JOIN bench.suites q ON q.suite_id = p.suite_id
  LEFT JOIN bench.report r ON r.run_id = p.run_id
  LEFT JOIN gym.tasks t ON t.task_id = p.task_id
  WHERE p.suite_id = $suite),
turns AS (
  SELECT number, steps,
         row_number() OVER (PARTITION BY task_id ORDER BY sign * test_score DESC NULLS LAST, sign * validation_score DESC NULLS LAST, number)
           AS turn
  FROM searches
  WHERE has_programs),
parts AS (
  SELECT number, sum(least(steps, $each)) OVER (ORDER BY turn, number ROWS UNBOUNDED PRECEDING) AS programs
  FROM turns)
SELECT s.number, s.task_id, s.repeat, s.run_id, s.seed, s.policy, s.model, s.status, s.stop_reason, s.steps, s.steps_limit, s.metric,
       s.higher_is_better, s.validation_score, s.valid, s.test_score, s.medal, s.rank, s.teams, s.human_rank, s.selection,
       s.tokens, s.cost_usd, s.sandbox_seconds, s.error, s.has_programs,
       s.status IN ('failed', 'not_started', 'task_missing', 'cancelled', 'interrupted') AS is_fault,
       coalesce(p.programs <= $programs, FALSE) AS has_part
FROM searches s
LEFT JOIN parts p ON p.number = s.number
ORDER BY s.number
