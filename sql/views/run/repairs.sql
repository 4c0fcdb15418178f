-- The newest failure of the current run that can be debugged, as a row of a policy: no row when there is none.
--
-- A chain of debug steps ends at debug_depth (10 when it is not set), after debug_seconds, or when a step fails like the
-- step before it.
SELECT 'debug'   AS operator,
       1.0       AS operator_weight,
       f.node_id AS parent_id,
       1.0       AS weight,
       3         AS priority
FROM run.settings s CROSS JOIN run.failures f
WHERE f.is_debuggable AND f.depth < COALESCE(s.debug_depth, 10)
ORDER BY f.step DESC
LIMIT 1
