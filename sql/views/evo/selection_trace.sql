-- One row a parent that a recorded draw listed: how likely it was and whether it was taken. A draft has one row without a parent.
--
-- A draw lists the parents that it took and the likeliest others, eight of them; candidates is how many there were, and
-- effective_candidates among how many the choice really was. operator_probability is that of the operator, probability that of being
-- drawn first among the parents of the operator. policy_trace shows what a policy makes of all candidates.
WITH draws AS (
  SELECT run_id, task_id, attempt_id, node_id, step, generation, island, snapshot_id, policy, operator, parent_id, parent2_id,
         draw_record(draw) AS record
  FROM evo.attempts
  WHERE draw IS NOT NULL AND NOT late),
listed AS (
  SELECT *, unnest(record['parents']) AS item FROM draws
  UNION ALL
  SELECT *, NULL FROM draws WHERE parent_id IS NULL)
SELECT run_id,
       task_id,
       attempt_id,
       node_id,
       step,
       generation,
       island,
       snapshot_id,
       policy,
       operator,
       record['operator_probability']  AS operator_probability,
       item['parent_id']             AS parent_id,
       item['parent2_id']            AS parent2_id,
       item['weight']                AS weight,
       item['probability']           AS probability,
       CASE WHEN item['parent_id'] IS NULL      THEN parent_id IS NULL
            WHEN item['parent2_id'] IS NOT NULL THEN item['parent_id'] = parent_id AND COALESCE(item['parent2_id'] = parent2_id, FALSE)
            ELSE item['parent_id'] = parent_id OR COALESCE(item['parent_id'] = parent2_id, FALSE) END AS is_taken,
       record['candidates']            AS candidates,
       record['effective_candidates']  AS effective_candidates
FROM listed
