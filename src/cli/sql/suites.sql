-- The suites of the store, the newest first.
SELECT q.suite_id AS suite,
       s.status,
       r.policy, r.model, r.tasks, r.repeats, r.searches, r.finished, r.failed, r.missing,
       r.mean_medal_rate AS medal_rate, q.created_at
FROM bench.suites q
JOIN bench.suite_report r ON r.suite_id = q.suite_id
JOIN bench.suite_states s ON s.suite_id = q.suite_id
ORDER BY q.created_at DESC
