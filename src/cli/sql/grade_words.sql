-- The same for reading.
SELECT task_id, status, valid, score, $standing AS standing, thresholds, leaderboard_median, detail, submission_id
FROM bench.grades
LEFT JOIN (
    SELECT task_id AS of_task,
           concat('gold ', round(gold, 5), ', silver ', round(silver, 5), ', bronze ', round(bronze, 5)) AS thresholds
    FROM bench.thresholds) t ON t.of_task = task_id
WHERE submission_id = $submission
