-- One row a suite: how far it is, its rates as mean and standard deviation over the repeats, and what a medal cost.
--
-- Rates are over the searches that have ended by themselves; searches of tasks that are not imported (missing) are none of them.
-- tokens_per_medal and usd_per_medal are NULL where there is no medal, or where what a request spent is not known.
SELECT q.suite_id,
       q.definition,
       q.policy,
       q.model,
       cardinality(q.tasks)                                             AS tasks,
       q.repeats,
       p.searches,
       p.finished,
       p.failed,
       p.missing,
       m.mean_valid_rate,
       m.std_valid_rate,
       m.mean_medal_rate,
       m.std_medal_rate,
       m.mean_human_rank,
       m.std_human_rank,
       m.gold,
       m.silver,
       m.bronze,
       m.tokens,
       m.unknown_tokens,
       m.cost_usd,
       m.unknown_costs,
       m.sandbox_seconds,
       CASE WHEN m.unknown_tokens = 0 THEN m.tokens / nullif(m.medals, 0) END AS tokens_per_medal,
       CASE WHEN m.unknown_costs = 0 THEN m.cost_usd / nullif(m.medals, 0) END AS usd_per_medal,
       m.sandbox_seconds / nullif(m.medals, 0)                          AS sandbox_seconds_per_medal,
       q.created_at,
       q.finished_at
FROM bench.suites q
LEFT JOIN (
  SELECT suite_id,
         count(*)                                                          AS searches,
         count(*) FILTER (WHERE status = 'finished')                       AS finished,
         count(*) FILTER (WHERE status IN ('failed', 'not_started'))       AS failed,
         count(*) FILTER (WHERE status = 'task_missing')                   AS missing
  FROM bench.suite_progress
  GROUP BY suite_id) p ON p.suite_id = q.suite_id
LEFT JOIN (
  SELECT suite_id,
         avg(valid_rate)              AS mean_valid_rate,
         stddev_samp(valid_rate)      AS std_valid_rate,
         avg(medal_rate)              AS mean_medal_rate,
         stddev_samp(medal_rate)      AS std_medal_rate,
         avg(human_rank)              AS mean_human_rank,
         stddev_samp(human_rank)      AS std_human_rank,
         sum(gold)                    AS gold,
         sum(silver)                  AS silver,
         sum(bronze)                  AS bronze,
         CAST(sum(gold + silver + bronze) AS DOUBLE) AS medals,
         sum(tokens)                  AS tokens,
         sum(unknown_tokens)          AS unknown_tokens,
         sum(cost_usd)                AS cost_usd,
         sum(unknown_costs)           AS unknown_costs,
         sum(sandbox_seconds)         AS sandbox_seconds
  FROM (
    SELECT suite_id,
           repeat,
           sum(valid) / CAST(sum(tasks) AS DOUBLE)                  AS valid_rate,
           sum(gold + silver + bronze) / CAST(sum(tasks) AS DOUBLE) AS medal_rate,
           sum(mean_human_rank * valid) / nullif(sum(valid), 0)     AS human_rank,
           sum(gold)                                                AS gold,
           sum(silver)                                              AS silver,
           sum(bronze)                                              AS bronze,
           sum(tokens)                                              AS tokens,
           sum(unknown_tokens)                                      AS unknown_tokens,
           sum(cost_usd)                                            AS cost_usd,
           sum(unknown_costs)                                       AS unknown_costs,
           sum(sandbox_seconds)                                     AS sandbox_seconds
    FROM bench.by_repeat
    WHERE suite_id IS NOT NULL
    GROUP BY suite_id, repeat) repeats
  GROUP BY suite_id) m ON m.suite_id = q.suite_id
