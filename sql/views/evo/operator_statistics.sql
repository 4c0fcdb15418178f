-- One row a run, task and operator: what it was used for, what it gained and what it cost.
--
-- mean_gain is the mean of the gains over the parent, best_score the best signed score; unknown costs are left out of
-- cost_usd and counted in unknown_costs.
SELECT run_id,
       task_id,
       operator,
       count(*)                                                    AS nodes,
       count(*) FILTER (WHERE NOT is_buggy)                        AS good,
       count(*) FILTER (WHERE delta_vs_parent > 0)                 AS improved,
       avg(delta_vs_parent)                                        AS mean_gain,
       sum(CASE WHEN delta_vs_parent > 0 THEN delta_vs_parent END) AS total_gain,
       max(signed_score)                                           AS best_score,
       sum(tokens_prompt)                                          AS tokens_prompt,
       sum(tokens_completion)                                      AS tokens_completion,
       sum(cost_usd)                                               AS cost_usd,
       count(*) FILTER (WHERE cost_usd IS NULL)                    AS unknown_costs,
       sum(model_seconds)                                          AS model_seconds,
       sum(sandbox_seconds)                                        AS sandbox_seconds
FROM evo.nodes
GROUP BY run_id, task_id, operator
