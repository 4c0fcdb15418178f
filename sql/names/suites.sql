-- Suites that a name may mean, with what they are.
SELECT suite_id AS id,
       concat(policy, ', ', status) AS what,
       created_at
FROM bench.suites
