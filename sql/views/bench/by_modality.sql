-- One row a suite, modality, policy and model: rates over its tasks, as mean and standard deviation over the repeats.
SELECT suite_id,
       modality,
       policy,
       model,
       max(tasks)                   AS tasks,
       count(*)                     AS repeats,
       sum(tasks)                   AS runs,
       avg(valid_rate)              AS mean_valid_rate,
       stddev_samp(valid_rate)      AS std_valid_rate,
       avg(medal_rate)              AS mean_medal_rate,
       stddev_samp(medal_rate)      AS std_medal_rate,
       avg(gold_rate)               AS mean_gold_rate,
       avg(mean_human_rank)         AS mean_human_rank,
       stddev_samp(mean_human_rank) AS std_human_rank,
       sum(gold)                    AS gold,
       sum(silver)                  AS silver,
       sum(bronze)                  AS bronze,
       sum(tokens)                  AS tokens,
       sum(cost_usd)                AS cost_usd,
       sum(unknown_costs)           AS unknown_costs,
       sum(sandbox_seconds)         AS sandbox_seconds
FROM bench.by_repeat
GROUP BY suite_id, modality, policy, model
