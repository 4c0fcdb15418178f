-- Nodes a crossover is shown: both parents; the nearest ancestors of each, breadth-first over all parents, up to three generations
-- back; the siblings of each, by utility. A node that has several roles is shown once, in the first.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind for one parent: $ancestors (up to 3), $siblings, $children,
-- $failures.
WITH lines AS (
  SELECT CASE WHEN e1.child_id = $parent_id THEN 0 ELSE 1 END AS side,
         e1.parent_id AS a1, e2.parent_id AS a2, e3.parent_id AS a3,
         CASE e1.role WHEN 'parent' THEN '0' ELSE '1' END AS s1,
         CASE e2.role WHEN 'parent' THEN '0' ELSE '1' END AS s2,
         CASE e3.role WHEN 'parent' THEN '0' ELSE '1' END AS s3
  FROM evo.edges e1
  LEFT JOIN evo.edges e2 ON e2.child_id = e1.parent_id
  LEFT JOIN evo.edges e3 ON e3.child_id = e2.parent_id
  WHERE e1.child_id IN ($parent_id, $parent2_id)),
met AS (
  SELECT side,
         unnest(make_array(a1, a2, a3))                                     AS node_id,
         unnest(make_array(1, 2, 3))                                        AS depth,
         unnest(make_array(s1, concat(s1, s2), concat(s1, s2, s3)))         AS path
  FROM lines),
-- Each ancestor of a parent once, where the search first meets it.
ancestors AS (
  SELECT side, node_id, row_number() OVER (PARTITION BY side ORDER BY depth, path) AS place
  FROM (SELECT *, row_number() OVER (PARTITION BY side, node_id ORDER BY depth, path) AS copy FROM met WHERE node_id IS NOT NULL) first
  WHERE copy = 1),
shown AS (
  SELECT 'parent' AS role, CAST($parent_id AS VARCHAR) AS node_id, 0 AS kind, 0 AS side, 0 AS place
  UNION ALL
  SELECT 'parent2', CAST($parent2_id AS VARCHAR), 0, 1, 0
  UNION ALL
  SELECT 'ancestor', node_id, 1, side, place FROM ancestors WHERE place <= $ancestors
  UNION ALL
  SELECT relation, relative_id, 2, CASE WHEN node_id = $parent_id THEN 0 ELSE 1 END, place
  FROM evo.relatives
  WHERE node_id IN ($parent_id, $parent2_id) AND relation = 'sibling' AND place <= $siblings)
SELECT role, node_id, row_number() OVER (ORDER BY kind, side, place) AS place
FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY kind, side, place) AS copy FROM shown) once
WHERE copy = 1
