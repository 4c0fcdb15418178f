-- One row a run: what it searched with, the validation score of the node it chose, and how its submission did on the hidden
-- test. Nodes that were added by hand after the run had ended do not change its row.
--
-- gain is how far the test score is better than the leaderboard's median, in the metric's own unit; NULL without one.
SELECT r.run_id,
       r.task_id,
       r.policy,
       r.model,
       r.status,
       r.stop_reason,
       r.steps_done,
       r.seed,
       n.score         AS validation_score,
       n.step          AS best_step,
       g.node_id,
       g.valid,
       g.score         AS test_score,
       g.medal,
       g.rank,
       g.teams,
       g.human_rank,
       CASE WHEN t.higher_is_better THEN g.score - g.leaderboard_median
            ELSE g.leaderboard_median - g.score END AS gain,
       t.metric,
       t.higher_is_better,
       r.started_at,
       r.finished_at,
       g.graded_at
FROM evo.runs r
LEFT JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN (
  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY graded_at DESC, submission_id) AS place
  FROM bench.grades WHERE run_id IS NOT NULL) g ON g.run_id = r.run_id AND g.place = 1
LEFT JOIN evo.nodes n ON n.node_id = coalesce(g.node_id, r.final_node_id, r.best_node_id)
