-- One row a moment of sandbox time, counted in each search from its beginning, at which searches of a suite win or lose a medal: the
-- share of those that ended by themselves that have one then.
--
-- estimated is by the validation score of the best so far on the leaderboard. tested is by the hidden test, from when the graded program
-- was the best so far: programs that were not graded change nothing. Both are as in bench.medal_curve. last_seconds is the sandbox time
-- of the longest search.
-- Parameters: $suite.
WITH ended AS (
  SELECT run_id FROM bench.report WHERE suite_id = $suite AND status IN ('finished', 'failed')),
curve AS (
  SELECT c.run_id, c.step, c.sandbox_seconds,
         CASE WHEN c.validation_medal IN ('gold', 'silver', 'bronze') THEN 1 ELSE 0 END AS estimated,
         CASE WHEN c.test_medal IN ('gold', 'silver', 'bronze') THEN 1 ELSE 0 END       AS tested,
         c.test_medal IS NOT NULL                                                       AS is_tested
  FROM bench.medal_curve c
  JOIN ended e ON e.run_id = c.run_id),
changes AS (
  SELECT sandbox_seconds, estimated - lag(estimated, 1, 0) OVER (PARTITION BY run_id ORDER BY step) AS estimated, 0 AS tested
  FROM curve
  UNION ALL
  SELECT sandbox_seconds, 0, tested - lag(tested, 1, 0) OVER (PARTITION BY run_id ORDER BY step)
  FROM curve
  WHERE is_tested),
moments AS (
  SELECT sandbox_seconds, sum(estimated) AS estimated, sum(tested) AS tested
  FROM changes
  WHERE estimated <> 0 OR tested <> 0
  GROUP BY sandbox_seconds)
SELECT m.sandbox_seconds,
       CAST(sum(m.estimated) OVER so_far AS DOUBLE) / t.searches AS estimated,
       CAST(sum(m.tested) OVER so_far AS DOUBLE) / t.searches    AS tested,
       t.last_seconds
FROM moments m
CROSS JOIN (
  SELECT count(*) AS searches, max(seconds) AS last_seconds
  FROM (
    SELECT e.run_id, sum(coalesce(n.sandbox_seconds, 0)) AS seconds
    FROM ended e
    LEFT JOIN evo.nodes n ON n.run_id = e.run_id
    GROUP BY e.run_id) searches) t
WINDOW so_far AS (ORDER BY m.sandbox_seconds ROWS UNBOUNDED PRECEDING)
ORDER BY m.sandbox_seconds
