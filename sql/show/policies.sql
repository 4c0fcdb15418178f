-- SHOW POLICIES: shipped and own policies, with the beginning of their comments; system.policies has the whole ones.
SELECT name, origin, split_part(split_part(comment, chr(10), 1), ':', 1) AS comment
FROM system.policies
ORDER BY origin, name
