-- One row a suite, modality, policy and model: rates over its tasks, as mean and standard deviation over the repeats.
--
-- tokens_per_medal and usd_per_medal are NULL where there is no medal, or where what a request spent is not known.
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
       sum(unknown_tokens)          AS unknown_tokens,
       sum(cost_usd)                AS cost_usd,
       sum(unknown_costs)           AS unknown_costs,
       sum(sandbox_seconds)         AS sandbox_seconds,
       CASE WHEN sum(unknown_tokens) = 0
            THEN sum(tokens) / nullif(CAST(sum(gold + silver + bronze) AS DOUBLE), 0) END   AS tokens_per_medal,
       CASE WHEN sum(unknown_costs) = 0
            THEN sum(cost_usd) / nullif(CAST(sum(gold + silver + bronze) AS DOUBLE), 0) END AS usd_per_medal
FROM bench.by_repeat
GROUP BY suite_id, modality, policy, model
