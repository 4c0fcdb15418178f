-- One row an island of the current run and a node that may be a parent there: the candidates that live on it, and its visitors.
--
-- Every migration_interval generations the best migration_size admitted nodes of each island start to visit the next one (those of the
-- last island the first), until the next migration. A visitor's children live on the island that it visits. With an interval of 0, or
-- one island, nobody visits.
WITH migration AS (
  SELECT s.islands,
         s.migration_size,
         floor(p.generation / s.migration_interval) * s.migration_interval * s.generation_size AS last_step
  FROM run.settings s CROSS JOIN run.progress p
  WHERE s.islands > 1 AND s.migration_interval > 0 AND p.generation >= s.migration_interval),
ranked AS (
  SELECT c.node_id, m.islands, m.migration_size,
         row_number() OVER (PARTITION BY c.island ORDER BY c.signed_score DESC, c.step) AS place
  FROM migration m CROSS JOIN run.candidates c
  WHERE c.admitted AND c.step <= m.last_step)
SELECT island, node_id, step, signed_score, delta_vs_parent, family_count_before, admitted, FALSE AS is_visitor
FROM run.candidates
UNION ALL
SELECT CAST((c.island + 1) % r.islands AS BIGINT), c.node_id, c.step, c.signed_score, c.delta_vs_parent, c.family_count_before, c.admitted, TRUE
FROM ranked r JOIN run.candidates c ON c.node_id = r.node_id
WHERE r.place <= r.migration_size
