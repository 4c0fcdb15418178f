-- One row a policy and model: graded runs, valid submissions, medals, and what a medal cost.
--
-- tokens_per_medal and usd_per_medal are NULL where there is no medal, or where what a request spent is not known.
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
       unknown_tokens,
       cost_usd,
       unknown_costs,
       sandbox_seconds,
       CASE WHEN unknown_tokens = 0 THEN tokens / nullif(CAST(medals AS DOUBLE), 0) END AS tokens_per_medal,
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
         coalesce(sum(unknown_tokens), 0)                                 AS unknown_tokens,
         sum(cost_usd)                                                    AS cost_usd,
         coalesce(sum(unknown_costs), 0)                                  AS unknown_costs,
         sum(sandbox_seconds)                                             AS sandbox_seconds
  FROM bench.report
  WHERE graded_at IS NOT NULL
  GROUP BY policy, model) totals
