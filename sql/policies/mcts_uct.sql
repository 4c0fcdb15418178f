-- Monte-Carlo tree search: from the root down, the child with the largest upper confidence bound is followed,
--
--     mean reward below it + exploration * sqrt(ln(visits of its parent) / its visits)
--
-- up to the first good node with fewer children than the run has drafts, which is improved. Visits are the nodes below,
-- itself included; the reward of a node is its score, normalised to 0..1 over the run, and 0 for a failure. The drafts
-- are the children of the root. A failed node is passed through when a node below it is good. Failures are debugged and
-- drafts made as in openmle_evo.
WITH RECURSIVE tree AS (
  SELECT node_id, parent_id, step, NOT is_buggy AS good, COALESCE(minmax_norm(signed_score) OVER (), 0) AS reward
  FROM run.nodes),
below AS (
  SELECT node_id AS top_id, node_id, reward, good FROM tree
  UNION ALL
  SELECT b.top_id, t.node_id, t.reward, t.good FROM below b JOIN tree t ON t.parent_id = b.node_id),
statistics AS (
  SELECT top_id AS node_id, count(*) AS visits, avg(reward) AS mean_reward, bool_or(good) AS alive
  FROM below GROUP BY top_id),
siblings AS (
  SELECT t.node_id, t.parent_id, t.step, t.good, s.visits, s.mean_reward, s.alive,
         sum(s.visits) OVER (PARTITION BY t.parent_id) + 1 AS parent_visits,
         count(*) OVER (PARTITION BY t.parent_id)          AS brood
  FROM tree t JOIN statistics s ON s.node_id = t.node_id),
bounds AS (
  SELECT b.node_id, b.parent_id, b.step, b.brood, r.drafts AS branching,
         b.mean_reward + r.exploration * sqrt(ln(b.parent_visits) / b.visits) AS bound
  FROM run.settings r CROSS JOIN siblings b
  WHERE b.alive),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY parent_id ORDER BY bound DESC, step) AS place FROM bounds),
-- The walk takes the step into a node when the node is the best of its brood and its parent has no room left.
steps AS (
  SELECT r.node_id, r.place = 1 AND (r.parent_id IS NULL OR NOT p.good OR r.brood >= r.branching) AS is_taken
  FROM ranked r LEFT JOIN tree p ON p.node_id = r.parent_id),
walk AS (
  SELECT b.node_id, bool_and(s.is_taken) AS is_reached, count(*) AS depth, bool_or(b.good) AS good
  FROM below b JOIN steps s ON s.node_id = b.top_id GROUP BY b.node_id)
(SELECT 'improve' AS operator,
        1.0       AS operator_weight,
        node_id   AS parent_id,
        1.0       AS weight,
        1         AS priority
 FROM walk
 WHERE is_reached AND good
 ORDER BY depth DESC
 LIMIT 1)
UNION ALL SELECT * FROM run.repairs
UNION ALL SELECT * FROM run.drafts
