-- Nodes a crossover is shown: both parents; the nearest ancestors of each, breadth-first over all parents; the siblings of each, by
-- utility. A node that has several roles is shown once, in the first.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind for one parent: $ancestors, $siblings, $children, $failures.
WITH RECURSIVE ancestry AS (
  SELECT CAST($parent_id AS VARCHAR) AS node_id, 0 AS side, 0 AS depth, '' AS path
  UNION ALL
  SELECT CAST($parent2_id AS VARCHAR), 1, 0, ''
  UNION ALL
  SELECT e.parent_id, a.side, a.depth + 1, concat(a.path, CASE e.role WHEN 'parent' THEN '0' ELSE '1' END)
  FROM ancestry a JOIN evo.edges e ON e.child_id = a.node_id
  WHERE a.depth < $ancestors),
-- Each ancestor of a parent once, where the search first meets it.
ancestors AS (
  SELECT node_id, side, depth, row_number() OVER (PARTITION BY side ORDER BY depth, path) AS place
  FROM (SELECT *, row_number() OVER (PARTITION BY side, node_id ORDER BY depth, path) AS copy FROM ancestry) met
  WHERE copy = 1),
shown AS (
  SELECT CASE WHEN depth > 0 THEN 'ancestor' WHEN side = 0 THEN 'parent' ELSE 'parent2' END AS role,
         node_id,
         CASE depth WHEN 0 THEN 0 ELSE 1 END AS kind,
         side,
         place
  FROM ancestors
  WHERE place <= $ancestors + 1
  UNION ALL
  SELECT relation, relative_id, 2, CASE WHEN node_id = $parent_id THEN 0 ELSE 1 END, place
  FROM evo.relatives
  WHERE node_id IN ($parent_id, $parent2_id) AND relation = 'sibling' AND place <= $siblings)
SELECT role, node_id, row_number() OVER (ORDER BY kind, side, place) AS place
FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY kind, side, place) AS copy FROM shown) once
WHERE copy = 1
