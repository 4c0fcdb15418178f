-- One row a suite, task with published results, policy and model: the gap over its repeats, and how many of them match and surpass
-- the published result. Runs outside of suites are repeats of each other.
SELECT suite_id,
       task_id,
       policy,
       model,
       max(instances)                                    AS instances,
       count(*)                                          AS runs,
       count(*) FILTER (WHERE valid)                     AS valid,
       avg(gap)                                          AS mean_gap,
       stddev_samp(gap)                                  AS std_gap,
       max(gap)                                          AS best_gap,
       avg(CASE WHEN matches THEN 1.0 ELSE 0.0 END)      AS match_rate,
       avg(CASE WHEN surpasses THEN 1.0 ELSE 0.0 END)    AS surpass_rate,
       sum(tokens)                                       AS tokens,
       sum(cost_usd)                                     AS cost_usd,
       sum(sandbox_seconds)                              AS sandbox_seconds
FROM bench.naturebench_runs
GROUP BY suite_id, task_id, policy, model
