SELECT task_id AS task,
       ended AS runs,
       valid,
       CASE WHEN mean_test_score IS NOT NULL
            THEN concat(round(mean_test_score, 5), CASE WHEN std_test_score IS NULL THEN '' ELSE concat(' ± ', round(std_test_score, 5)) END)
       END AS test_score,
       round(mean_human_rank, 3) AS human_rank,
       gold, silver, bronze
FROM bench.by_task
WHERE suite_id = $suite
ORDER BY task_id
