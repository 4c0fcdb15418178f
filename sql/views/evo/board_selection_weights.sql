-- One row an admitted node that can be a parent: what the policy openmle_evo makes of it now, by the settings of its run.
--
-- utility = quality_weight * quality + progress_weight * progress + novelty_weight * novelty. quality is the score normalised over
-- the admitted nodes of the run, progress the gain over the parent where there is one, novelty how rare the method family was.
-- weight is the softmax of the utility over the node's island. What past draws saw is in evo.selection_trace.
WITH factors AS (
  SELECT run_id, task_id, node_id, step, island,
         minmax_norm(signed_score) OVER (PARTITION BY run_id, task_id)                         AS quality,
         COALESCE(positive_delta_norm(delta_vs_parent) OVER (PARTITION BY run_id, task_id), 0) AS progress,
         novelty(family_count_before)                                                          AS novelty
  FROM evo.candidates
  WHERE admitted),
utilities AS (
  SELECT f.*,
         s.selection_temperature AS temperature,
         s.quality_weight * f.quality + s.progress_weight * f.progress + s.novelty_weight * f.novelty AS utility
  FROM factors f JOIN evo.run_settings s ON s.run_id = f.run_id)
SELECT run_id, task_id, node_id, step, island, quality, progress, novelty, utility,
       softmax(utility, temperature) OVER (PARTITION BY run_id, task_id, island) AS weight
FROM utilities
