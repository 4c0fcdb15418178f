-- How the newest finished search of every task did: its programs, its chosen node, and the grade of that node's submission.
WITH runs AS (
  SELECT *, row_number() OVER (PARTITION BY task_id ORDER BY created_at DESC) AS age
  FROM bench.report r JOIN (SELECT run_id AS id, created_at FROM evo.runs) c ON c.id = r.run_id
  WHERE r.status = 'finished')
SELECT r.task_id                                                        AS task,
       r.metric || CASE WHEN r.higher_is_better THEN ' ↑' ELSE ' ↓' END AS metric,
       n.nodes,
       n.failed,
       round(r.validation_score, 4)                                     AS validation,
       r.best_step,
       coalesce(r.valid, false)                                         AS valid,
       round(r.test_score, 4)                                           AS test,
       round(g.leaderboard_median, 4)                                   AS median,
       r.gain > 0                                                       AS beats_median,
       r.rank,
       r.teams,
       r.medal,
       round(n.sandbox_seconds)                                         AS sandbox_s,
       round(date_part('epoch', r.finished_at - r.started_at))          AS wall_s
FROM runs r
LEFT JOIN bench.grades g ON g.run_id = r.run_id AND g.graded_at = r.graded_at
LEFT JOIN (
  SELECT run_id, count(*) AS nodes, count(*) FILTER (WHERE is_buggy) AS failed, sum(sandbox_seconds) AS sandbox_seconds
  FROM evo.nodes GROUP BY run_id) n ON n.run_id = r.run_id
WHERE r.age = 1
ORDER BY r.task_id
