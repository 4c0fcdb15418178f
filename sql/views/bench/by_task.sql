-- One row a suite, task, policy and model: what its repeats gave, as mean and standard deviation. Runs outside of suites have no
-- suite and are repeats of each other.
--
-- Rates are shares of the runs that have ended by themselves (ended): a run that failed has no valid submission. A standard
-- deviation is that of a sample, so one repeat has none.
SELECT suite_id,
       task_id,
       policy,
       model,
       min(metric)                                                       AS metric,
       bool_and(higher_is_better)                                        AS higher_is_better,
       count(*)                                                          AS runs,
       count(*) FILTER (WHERE status IN ('finished', 'failed'))          AS ended,
       count(*) FILTER (WHERE valid)                                     AS valid,
       count(*) FILTER (WHERE valid)
         / nullif(CAST(count(*) FILTER (WHERE status IN ('finished', 'failed')) AS DOUBLE), 0) AS valid_rate,
       avg(validation_score)                                             AS mean_validation_score,
       stddev_samp(validation_score)                                     AS std_validation_score,
       avg(test_score)                                                   AS mean_test_score,
       stddev_samp(test_score)                                           AS std_test_score,
       CASE WHEN bool_and(higher_is_better) THEN max(test_score) ELSE min(test_score) END AS best_test_score,
       avg(human_rank)                                                   AS mean_human_rank,
       stddev_samp(human_rank)                                           AS std_human_rank,
       count(*) FILTER (WHERE medal = 'gold')                            AS gold,
       count(*) FILTER (WHERE medal = 'silver')                          AS silver,
       count(*) FILTER (WHERE medal = 'bronze')                          AS bronze,
       count(*) FILTER (WHERE medal IN ('gold', 'silver', 'bronze'))
         / nullif(CAST(count(*) FILTER (WHERE status IN ('finished', 'failed')) AS DOUBLE), 0) AS medal_rate,
       sum(tokens)                                                       AS tokens,
       coalesce(sum(unknown_tokens), 0)                                  AS unknown_tokens,
       sum(cost_usd)                                                     AS cost_usd,
       coalesce(sum(unknown_costs), 0)                                   AS unknown_costs,
       sum(sandbox_seconds)                                              AS sandbox_seconds
FROM bench.report
GROUP BY suite_id, task_id, policy, model
