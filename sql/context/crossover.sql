-- Nodes a crossover is shown: both parents, and two nearest ancestors of each.
-- Parameters: $run_id, $parent_id, $parent2_id.
WITH chain AS (
  SELECT CASE WHEN p0.node_id = $parent_id THEN 0 ELSE 1 END AS side,
         p0.node_id AS parent, p0.parent_id AS a1, p1.parent_id AS a2
  FROM evo.nodes p0
  LEFT JOIN evo.nodes p1 ON p1.node_id = p0.parent_id
  WHERE p0.node_id = $parent_id OR p0.node_id = $parent2_id
),
shown AS (
  SELECT CASE side WHEN 0 THEN 'parent' ELSE 'parent2' END AS role, parent AS node_id, side AS place FROM chain
  UNION ALL SELECT 'ancestor', a1, 2 + side FROM chain WHERE a1 IS NOT NULL
  UNION ALL SELECT 'ancestor', a2, 4 + side FROM chain WHERE a2 IS NOT NULL
)
SELECT role, node_id
FROM (SELECT role, node_id, place, row_number() OVER (PARTITION BY node_id ORDER BY place) AS copy FROM shown) AS once
WHERE copy = 1
ORDER BY place
