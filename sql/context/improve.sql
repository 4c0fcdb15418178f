-- Nodes an improvement is shown: its parent; the nearest ancestors, breadth-first over all parents; the parent's siblings and its
-- children, by utility. The children are what was made of the parent before.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind: $ancestors, $siblings, $children, $failures.
WITH RECURSIVE ancestry AS (
  SELECT CAST($parent_id AS VARCHAR) AS node_id, 0 AS depth, '' AS path
  UNION ALL
  SELECT e.parent_id, a.depth + 1, concat(a.path, CASE e.role WHEN 'parent' THEN '0' ELSE '1' END)
  FROM ancestry a JOIN evo.edges e ON e.child_id = a.node_id
  WHERE a.depth < $ancestors),
-- Each ancestor once, where the search first meets it.
ancestors AS (
  SELECT node_id, depth, row_number() OVER (ORDER BY depth, path) AS place
  FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY depth, path) AS copy FROM ancestry) met
  WHERE copy = 1),
shown AS (
  SELECT CASE depth WHEN 0 THEN 'parent' ELSE 'ancestor' END AS role, node_id, CASE depth WHEN 0 THEN 0 ELSE 1 END AS kind, place
  FROM ancestors
  WHERE place <= $ancestors + 1
  UNION ALL
  SELECT relation, relative_id, CASE relation WHEN 'sibling' THEN 2 ELSE 3 END, place
  FROM evo.relatives
  WHERE node_id = $parent_id AND (relation = 'sibling' AND place <= $siblings OR relation = 'child' AND place <= $children))
SELECT role, node_id, row_number() OVER (ORDER BY kind, place) AS place
FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY kind, place) AS copy FROM shown) once
WHERE copy = 1
