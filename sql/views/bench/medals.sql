-- One row a policy and model: graded runs, valid submissions, medals, and what a medal cost.
--
-- usd_per_medal is NULL where the cost of a reply is not known.
SELECT policy,
       model,
       runs,
       valid,
       valid / CAST(runs AS DOUBLE)                                     AS valid_rate,
       gold,
       silver,
       bronze,
       medals / CAST(runs AS DOUBLE)                                    AS medal_rate,
       mean_human_rank,
       tokens,
       cost_usd,
       unknown_costs,
       sandbox_seconds,
       tokens / nullif(CAST(medals AS DOUBLE), 0)                       AS tokens_per_medal,
       CASE WHEN unknown_costs = 0 THEN cost_usd / nullif(medals, 0) END AS usd_per_medal,
       sandbox_seconds / nullif(medals, 0)                              AS sandbox_seconds_per_medal
FROM (
  SELECT policy,
         model,
         count(*)                                                         AS runs,
         count(*) FILTER (WHERE valid)                                    AS valid,
         count(*) FILTER (WHERE medal = 'gold')                           AS gold,
         count(*) FILTER (WHERE medal = 'silver')                         AS silver,
         count(*) FILTER (WHERE medal = 'bronze')                         AS bronze,
         count(*) FILTER (WHERE medal IN ('gold', 'silver', 'bronze'))    AS medals,
         avg(human_rank)                                                  AS mean_human_rank,
         sum(tokens)                                                      AS tokens,
         sum(cost_usd)                                                    AS cost_usd,
         coalesce(sum(unknown_costs), 0)                                  AS unknown_costs,
         sum(sandbox_seconds)                                             AS sandbox_seconds
  FROM bench.report
  WHERE graded_at IS NOT NULL
  GROUP BY policy, model) totals
