-- Nodes a crossover is shown: both parents, and two nearest ancestors of each.
-- Parameters: $run_id, $parent_id, $parent2_id.
WITH sides AS (
  SELECT CASE WHEN p0.node_id = $parent_id THEN 0 ELSE 1 END AS side, p0.node_id AS parent, p0.parent_id AS a1, p1.parent_id AS a2
  FROM evo.nodes p0
  LEFT JOIN evo.nodes p1 ON p1.node_id = p0.parent_id
  WHERE p0.node_id = $parent_id OR p0.node_id = $parent2_id
),
chain AS (
  SELECT unnest(make_array(parent, a1, a2))                 AS node_id,
         unnest(make_array(side, 2 + side, 4 + side))       AS place
  FROM sides
)
SELECT CASE place WHEN 0 THEN 'parent' WHEN 1 THEN 'parent2' ELSE 'ancestor' END AS role, node_id, place
FROM (
  SELECT node_id, place, row_number() OVER (PARTITION BY node_id ORDER BY place) AS copy
  FROM chain
  WHERE node_id IS NOT NULL) AS once
WHERE copy = 1
