-- One row a run and node that was better than everything before it: the medal of the best so far, over the time spent.
--
-- sandbox_seconds and active_seconds (model and sandbox) are those of the run up to this node. validation_medal is the medal that
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
       n.score                                          AS validation_score,
       medal(n.score, b.scores, b.higher_is_better)     AS validation_medal,
       g.score                                          AS test_score,
       g.medal                                          AS test_medal
FROM evo.board_score_history h
JOIN (
  SELECT run_id, node_id, score,
         sum(coalesce(sandbox_seconds, 0)) OVER so_far                                AS sandbox_seconds,
         sum(coalesce(sandbox_seconds, 0) + coalesce(model_seconds, 0)) OVER so_far   AS active_seconds
  FROM evo.nodes
  WHERE run_id IS NOT NULL
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
