-- SHOW POLICIES: shipped and own policies.
SELECT name, origin, comment, created_at
FROM system.policies
ORDER BY origin, name
