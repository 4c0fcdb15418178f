-- One row a run: what it searched with, what it spent, the validation score of the node it chose, and how its submission did on
-- the hidden test. Nodes that were added by hand after the run had ended do not change its row.
--
-- repeat is the run's number in its suite, or among the runs outside of suites with the same task, policy and model. The grade is
-- that of the first run on the final data; mean_test_score and std_test_score are over all of them (submit_repeats).
-- selection says how the node was chosen. gain is how far the test score is better than the leaderboard's median, in the
-- metric's own unit; NULL without one. tokens and cost_usd are those of all requests; unknown_tokens and unknown_costs
-- count requests of which that is not known (bench.spend).
SELECT r.run_id,
       r.task_id,
       r.policy,
       r.model,
       r.status,
       r.stop_reason,
       r.steps_done,
       r.seed,
       s.suite_id,
       coalesce(s.repeat,
                CAST(row_number() OVER (PARTITION BY s.suite_id, r.task_id, r.policy, r.model
                                        ORDER BY r.created_at, r.run_id) AS BIGINT)) AS repeat,
       n.score         AS validation_score,
       n.step          AS best_step,
       g.node_id,
       g.submission_id,
       g.selection,
       g.valid,
       g.score         AS test_score,
       g.medal,
       g.rank,
       g.teams,
       g.human_rank,
       CASE WHEN t.higher_is_better THEN g.score - g.leaderboard_median
            ELSE g.leaderboard_median - g.score END AS gain,
       f.submissions,
       f.mean_test_score,
       f.std_test_score,
       u.tokens,
       u.cost_usd,
       u.unknown_tokens,
       u.unknown_costs,
       x.model_seconds,
       x.sandbox_seconds,
       t.modality,
       t.metric,
       t.higher_is_better,
       r.started_at,
       r.finished_at,
       g.graded_at
FROM evo.runs r
LEFT JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN bench.suite_runs s ON s.run_id = r.run_id
LEFT JOIN (
  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY coalesce(repeat, 1), graded_at DESC, submission_id) AS place
  FROM bench.grades WHERE run_id IS NOT NULL AND role IS DISTINCT FROM 'incumbent') g ON g.run_id = r.run_id AND g.place = 1
LEFT JOIN (
  SELECT run_id, node_id, count(*) AS submissions, avg(score) AS mean_test_score, stddev_samp(score) AS std_test_score
  FROM bench.grades WHERE run_id IS NOT NULL AND role IS DISTINCT FROM 'incumbent'
  GROUP BY run_id, node_id) f ON f.run_id = g.run_id AND f.node_id = g.node_id
LEFT JOIN (
  SELECT run_id, sum(tokens) AS tokens, sum(unknown_tokens) AS unknown_tokens,
         sum(cost_usd) AS cost_usd, sum(unknown_costs) AS unknown_costs
  FROM bench.spend
  GROUP BY run_id) u ON u.run_id = r.run_id
LEFT JOIN (
  SELECT run_id, sum(model_seconds) AS model_seconds, sum(sandbox_seconds) AS sandbox_seconds
  FROM evo.nodes WHERE run_id IS NOT NULL
  GROUP BY run_id) x ON x.run_id = r.run_id
LEFT JOIN evo.nodes n ON n.node_id = coalesce(g.node_id, r.final_node_id, r.best_node_id)
