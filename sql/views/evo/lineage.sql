-- One row a node and one of its ancestors: depth 1 is a parent, along the shortest way when there are several.
WITH RECURSIVE ancestry AS (
  SELECT child_id AS node_id, parent_id AS ancestor_id, 1 AS depth FROM evo.edges
  UNION
  SELECT a.node_id, e.parent_id, a.depth + 1
  FROM ancestry a JOIN evo.edges e ON e.child_id = a.ancestor_id
)
SELECT node_id, ancestor_id, min(depth) AS depth
FROM ancestry
GROUP BY node_id, ancestor_id
