-- A graded submission with its place and the scores that win medals on its task.
SELECT g.task_id, g.status, g.valid, g.score, g.medal, g.rank, g.teams, g.human_rank,
       CASE WHEN t.higher_is_better THEN g.score > g.leaderboard_median ELSE g.score < g.leaderboard_median END AS above_median,
       t.gold AS gold_threshold, t.silver AS silver_threshold, t.bronze AS bronze_threshold, g.leaderboard_median,
       g.detail, g.submission_id
FROM bench.grades g
LEFT JOIN bench.thresholds t ON t.task_id = g.task_id
WHERE g.submission_id = $submission
