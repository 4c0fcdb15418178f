-- One row a run: what it searched with, its best validation score, and how its submission did on the hidden test.
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
       b.score         AS validation_score,
       b.step          AS best_step,
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
LEFT JOIN evo.best b ON b.run_id = r.run_id AND b.task_id = r.task_id
LEFT JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN (
  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY graded_at DESC, submission_id) AS place
  FROM bench.grades WHERE run_id IS NOT NULL) g ON g.run_id = r.run_id AND g.place = 1
