-- One row a suite, policy and model: the share of the tasks with published results that are matched and surpassed, as mean and
-- standard deviation over the repeats.
SELECT suite_id,
       policy,
       model,
       max(tasks)                   AS tasks,
       count(*)                     AS repeats,
       avg(match_rate)              AS mean_match_rate,
       stddev_samp(match_rate)      AS std_match_rate,
       avg(surpass_rate)            AS mean_surpass_rate,
       stddev_samp(surpass_rate)    AS std_surpass_rate,
       avg(mean_gap)                AS mean_gap,
       stddev_samp(mean_gap)        AS std_gap
FROM (
  SELECT suite_id,
         policy,
         model,
         repeat,
         count(*)                                        AS tasks,
         avg(CASE WHEN matches THEN 1.0 ELSE 0.0 END)    AS match_rate,
         avg(CASE WHEN surpasses THEN 1.0 ELSE 0.0 END)  AS surpass_rate,
         avg(gap)                                        AS mean_gap
  FROM bench.naturebench_runs
  GROUP BY suite_id, policy, model, repeat) repeats
GROUP BY suite_id, policy, model
