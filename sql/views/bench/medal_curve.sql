-- One row a run and node that was better than everything before it: the medal of the best so far, over the time spent.
--
-- sandbox_seconds, active_seconds (model and sandbox), tokens and cost_usd are those of the run's nodes up to this one, with
-- every request that was made for them; unknown_tokens and unknown_costs are as in bench.report. validation_medal is the medal that
-- the validation score would win on the leaderboard: an estimate. test_medal is the medal that the node won; only graded nodes
-- have one, and a run with grade_incumbents grades all of them.
SELECT h.run_id,
       h.task_id,
       s.suite_id,
       s.repeat,
       h.step,
       h.node_id,
       n.sandbox_seconds,
       n.active_seconds,
       n.tokens,
       n.cost_usd,
       n.unknown_tokens,
       n.unknown_costs,
       n.score                                          AS validation_score,
       medal(n.score, b.scores, b.higher_is_better)     AS validation_medal,
       g.score                                          AS test_score,
       g.medal                                          AS test_medal
FROM evo.board_score_history h
JOIN (
  SELECT run_id, node_id, score,
         sum(coalesce(sandbox_seconds, 0)) OVER so_far                                AS sandbox_seconds,
         sum(coalesce(sandbox_seconds, 0) + coalesce(model_seconds, 0)) OVER so_far   AS active_seconds,
         sum(coalesce(tokens, 0)) OVER so_far                                         AS tokens,
         sum(coalesce(unknown_tokens, 0)) OVER so_far                                 AS unknown_tokens,
         sum(coalesce(cost_usd, 0)) OVER so_far                                       AS cost_usd,
         sum(coalesce(unknown_costs, 0)) OVER so_far                                  AS unknown_costs
  FROM (
    SELECT n.run_id, n.node_id, n.step, n.score, n.sandbox_seconds, n.model_seconds,
           u.tokens, u.unknown_tokens, u.cost_usd, u.unknown_costs
    FROM evo.nodes n
    LEFT JOIN (
      SELECT attempt_id, sum(tokens) AS tokens, sum(unknown_tokens) AS unknown_tokens,
             sum(cost_usd) AS cost_usd, sum(unknown_costs) AS unknown_costs
      FROM bench.spend GROUP BY attempt_id) u ON u.attempt_id = n.attempt_id
    WHERE n.run_id IS NOT NULL) nodes
  WINDOW so_far AS (PARTITION BY run_id ORDER BY step ROWS UNBOUNDED PRECEDING)) n
  ON n.run_id = h.run_id AND n.node_id = h.node_id
LEFT JOIN bench.suite_runs s ON s.run_id = h.run_id
LEFT JOIN (
  SELECT t.task_id, t.higher_is_better, array_agg(l.score) AS scores
  FROM gym.tasks t
  JOIN gym.leaderboards l ON l.task_id = t.task_id AND l.package_hash = t.package_hash
  GROUP BY t.task_id, t.higher_is_better) b ON b.task_id = h.task_id
LEFT JOIN (
  SELECT run_id, node_id, score, medal,
         row_number() OVER (PARTITION BY run_id, node_id ORDER BY coalesce(repeat, 1), graded_at DESC, submission_id) AS place
  FROM bench.grades WHERE run_id IS NOT NULL) g ON g.run_id = h.run_id AND g.node_id = h.node_id AND g.place = 1
WHERE h.is_incumbent
