-- Nodes an improvement is shown: its parent; the nearest ancestors, breadth-first over all parents, up to three generations back; the
-- parent's siblings and its children, by utility. The children are what was made of the parent before.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind: $ancestors (up to 3), $siblings, $children, $failures.
WITH lines AS (
  SELECT e1.parent_id AS a1, e2.parent_id AS a2, e3.parent_id AS a3,
         CASE e1.role WHEN 'parent' THEN '0' ELSE '1' END AS s1,
         CASE e2.role WHEN 'parent' THEN '0' ELSE '1' END AS s2,
         CASE e3.role WHEN 'parent' THEN '0' ELSE '1' END AS s3
  FROM evo.edges e1
  LEFT JOIN evo.edges e2 ON e2.child_id = e1.parent_id
  LEFT JOIN evo.edges e3 ON e3.child_id = e2.parent_id
  WHERE e1.child_id = $parent_id),
met AS (
  SELECT unnest(make_array(a1, a2, a3))                                     AS node_id,
         unnest(make_array(1, 2, 3))                                        AS depth,
         unnest(make_array(s1, concat(s1, s2), concat(s1, s2, s3)))         AS path
  FROM lines),
-- Each ancestor once, where the search first meets it.
ancestors AS (
  SELECT node_id, row_number() OVER (ORDER BY depth, path) AS place
  FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY depth, path) AS copy FROM met WHERE node_id IS NOT NULL) first
  WHERE copy = 1),
shown AS (
  SELECT 'parent' AS role, CAST($parent_id AS VARCHAR) AS node_id, 0 AS kind, 0 AS place
  UNION ALL
  SELECT 'ancestor', node_id, 1, place FROM ancestors WHERE place <= $ancestors
  UNION ALL
  SELECT relation, relative_id, CASE relation WHEN 'sibling' THEN 2 ELSE 3 END, place
  FROM evo.relatives
  WHERE node_id = $parent_id AND (relation = 'sibling' AND place <= $siblings OR relation = 'child' AND place <= $children))
SELECT role, node_id, row_number() OVER (ORDER BY kind, place) AS place
FROM (SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY kind, place) AS copy FROM shown) once
WHERE copy = 1
