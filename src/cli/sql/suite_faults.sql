SELECT task_id AS task, repeat, status, error
FROM bench.suite_progress
WHERE suite_id = $suite AND status IN ('failed', 'not_started', 'task_missing', 'cancelled', 'interrupted')
ORDER BY task_id, repeat
