-- One row a node and a relative of it: a child, or a sibling, which shares a parent with it. place orders the relatives of a kind by
-- utility, the earliest of equals first.
--
-- utility is that of the published search, 1.0 * quality + 0.4 * progress + 0.25 * novelty, with the scores and the gains normalised
-- over the relatives of the kind. It is what operators are shown by, so it does not depend on the settings of a run. Every pair of
-- siblings is two rows: ask for few nodes at once.
WITH pairs AS (
  SELECT DISTINCT a.child_id AS node_id, 'sibling' AS relation, b.child_id AS relative_id
  FROM evo.edges a JOIN evo.edges b ON b.parent_id = a.parent_id
  WHERE b.child_id <> a.child_id
  UNION ALL
  SELECT parent_id, 'child', child_id FROM evo.edges),
factors AS (
  SELECT p.node_id, p.relation, p.relative_id, n.step,
         COALESCE(minmax_norm(CASE WHEN NOT n.is_buggy THEN n.signed_score END) OVER (PARTITION BY p.node_id, p.relation), 0) AS quality,
         COALESCE(positive_delta_norm(n.delta_vs_parent) OVER (PARTITION BY p.node_id, p.relation), 0)                      AS progress,
         novelty(n.family_count_before)                                                                                    AS novelty
  FROM pairs p JOIN evo.nodes n ON n.node_id = p.relative_id)
SELECT node_id, relation, relative_id, utility,
       row_number() OVER (PARTITION BY node_id, relation ORDER BY utility DESC, step) AS place
FROM (SELECT *, 1.0 * quality + 0.4 * progress + 0.25 * novelty AS utility FROM factors) scored
