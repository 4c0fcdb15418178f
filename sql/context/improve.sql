-- Nodes an improvement is shown: its parent, the three nearest ancestors along the first parent, three siblings by score.
-- Parameters: $run_id, $parent_id, $parent2_id.
WITH chain AS (
  SELECT unnest(make_array(p0.node_id, p0.parent_id, p1.parent_id, p2.parent_id)) AS node_id,
         unnest(make_array(0, 1, 2, 3))                                           AS place
  FROM evo.nodes p0
  LEFT JOIN evo.nodes p1 ON p1.node_id = p0.parent_id
  LEFT JOIN evo.nodes p2 ON p2.node_id = p1.parent_id
  WHERE p0.node_id = $parent_id
),
shown AS (
  SELECT CASE place WHEN 0 THEN 'parent' ELSE 'ancestor' END AS role, node_id, place
  FROM chain
  WHERE node_id IS NOT NULL
  UNION ALL (
    SELECT 'sibling', s.node_id, 3 + row_number() OVER (ORDER BY s.signed_score DESC NULLS LAST, s.step) AS place
    FROM evo.nodes s
    WHERE s.parent_id = $parent_id
    ORDER BY s.signed_score DESC NULLS LAST, s.step
    LIMIT 3)
)
SELECT role, node_id, place
FROM shown
