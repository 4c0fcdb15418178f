-- Suites that a name may mean, with what they are.
SELECT q.suite_id AS id,
       concat(q.policy, ', ', s.status) AS what,
       q.created_at
FROM bench.suites q
JOIN bench.suite_states s ON s.suite_id = q.suite_id
