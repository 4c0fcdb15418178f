-- One row a suite, modality, policy, model and repeat: shares of its tasks. Only runs that have ended by themselves count; a run
-- that failed has no valid submission and no medal. mean_human_rank is over the valid submissions.
SELECT suite_id,
       modality,
       policy,
       model,
       repeat,
       count(*)                                                                     AS tasks,
       count(*) FILTER (WHERE valid)                                                AS valid,
       avg(CASE WHEN valid THEN 1.0 ELSE 0.0 END)                                   AS valid_rate,
       avg(CASE WHEN medal = 'gold' THEN 1.0 ELSE 0.0 END)                          AS gold_rate,
       avg(CASE WHEN medal IN ('gold', 'silver', 'bronze') THEN 1.0 ELSE 0.0 END)   AS medal_rate,
       count(*) FILTER (WHERE medal = 'gold')                                       AS gold,
       count(*) FILTER (WHERE medal = 'silver')                                     AS silver,
       count(*) FILTER (WHERE medal = 'bronze')                                     AS bronze,
       avg(human_rank)                                                              AS mean_human_rank,
       sum(tokens)                                                                  AS tokens,
       coalesce(sum(unknown_tokens), 0)                                             AS unknown_tokens,
       sum(cost_usd)                                                                AS cost_usd,
       coalesce(sum(unknown_costs), 0)                                              AS unknown_costs,
       sum(sandbox_seconds)                                                         AS sandbox_seconds
FROM bench.report
WHERE status IN ('finished', 'failed')
GROUP BY suite_id, modality, policy, model, repeat
