-- The suites of the store, the newest first. One that says running but that nobody conducts was interrupted.
SELECT q.suite_id AS suite,
       CASE WHEN q.status = 'running' AND l.owner IS NULL THEN 'interrupted' ELSE q.status END AS status,
       r.policy, r.model, r.tasks, r.repeats, r.searches, r.finished, r.failed, r.missing,
       r.mean_medal_rate AS medal_rate, q.created_at
FROM bench.suites q
JOIN bench.suite_report r ON r.suite_id = q.suite_id
LEFT JOIN sandbox.leases l ON l.kind = 'suite' AND l.id = concat('suite/', q.suite_id) AND l.is_live
ORDER BY q.created_at DESC
