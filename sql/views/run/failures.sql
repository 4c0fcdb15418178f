-- One row a failed program of the current run that no debug step has followed: the end of a debug chain.
--
-- depth counts the debug steps of the chain, and seconds their time in model and sandbox. repeats_signature: the last step
-- failed like the step before it, so the chain has ended. is_in_flight: a debug step is under way. is_debuggable: neither of
-- the two, and debug_seconds is not used up.
WITH RECURSIVE ends AS (
  SELECT n.node_id, n.parent_id, n.operator, n.step, n.island, n.status, n.error_class, n.error_signature,
         COALESCE(n.model_seconds, 0) + COALESCE(n.sandbox_seconds, 0) AS seconds
  FROM run.nodes n
  LEFT ANTI JOIN (SELECT parent_id FROM run.nodes WHERE operator = 'debug') followed ON followed.parent_id = n.node_id
  WHERE n.is_buggy AND n.status <> 'code_missing' AND n.duplicate_of IS NULL),
chains AS (
  SELECT node_id, parent_id, 1 AS depth, seconds FROM ends WHERE operator = 'debug'
  UNION ALL
  SELECT c.node_id, p.parent_id, c.depth + 1, c.seconds + COALESCE(p.model_seconds, 0) + COALESCE(p.sandbox_seconds, 0)
  FROM chains c JOIN run.nodes p ON p.node_id = c.parent_id
  WHERE p.operator = 'debug'),
described AS (
  SELECT e.node_id, e.step, e.island, e.operator, e.parent_id, e.status, e.error_class, e.error_signature,
         COALESCE(d.depth, 0)                                                            AS depth,
         COALESCE(d.seconds, 0)                                                          AS seconds,
         COALESCE(e.operator = 'debug' AND e.error_signature = p.error_signature, FALSE) AS repeats_signature,
         f.parent_id IS NOT NULL                                                         AS is_in_flight
  FROM ends e
  LEFT JOIN (SELECT node_id, max(depth) AS depth, max(seconds) AS seconds FROM chains GROUP BY node_id) d ON d.node_id = e.node_id
  LEFT JOIN run.nodes p ON p.node_id = e.parent_id
  LEFT JOIN (SELECT DISTINCT parent_id FROM run.in_flight WHERE operator = 'debug') f ON f.parent_id = e.node_id)
SELECT described.*,
       NOT repeats_signature AND NOT is_in_flight AND (s.debug_seconds IS NULL OR seconds < s.debug_seconds) AS is_debuggable
FROM described CROSS JOIN run.settings s
