-- Nodes an improvement is shown: its parent, the three nearest ancestors along the first parent, three siblings by score.
-- Parameters: $run_id, $parent_id, $parent2_id.
WITH chain AS (
  SELECT p0.node_id AS parent, p0.parent_id AS a1, p1.parent_id AS a2, p2.parent_id AS a3
  FROM evo.nodes p0
  LEFT JOIN evo.nodes p1 ON p1.node_id = p0.parent_id
  LEFT JOIN evo.nodes p2 ON p2.node_id = p1.parent_id
  WHERE p0.node_id = $parent_id
),
shown AS (
  SELECT 'parent' AS role, parent AS node_id, 0 AS place FROM chain
  UNION ALL SELECT 'ancestor', a1, 1 FROM chain WHERE a1 IS NOT NULL
  UNION ALL SELECT 'ancestor', a2, 2 FROM chain WHERE a2 IS NOT NULL
  UNION ALL SELECT 'ancestor', a3, 3 FROM chain WHERE a3 IS NOT NULL
  UNION ALL (
    SELECT 'sibling', s.node_id, 3 + row_number() OVER (ORDER BY s.signed_score DESC NULLS LAST, s.step) AS place
    FROM evo.nodes s
    WHERE s.parent_id = $parent_id
    ORDER BY s.signed_score DESC NULLS LAST, s.step
    LIMIT 3)
)
SELECT role, node_id
FROM shown
ORDER BY place
