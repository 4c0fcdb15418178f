-- One row a policy and model: graded runs, valid submissions and medals.
SELECT policy,
       model,
       count(*)                                       AS runs,
       count(*) FILTER (WHERE valid)                  AS valid,
       count(*) FILTER (WHERE medal = 'gold')         AS gold,
       count(*) FILTER (WHERE medal = 'silver')       AS silver,
       count(*) FILTER (WHERE medal = 'bronze')       AS bronze,
       avg(human_rank)                                AS mean_human_rank
FROM bench.report
WHERE graded_at IS NOT NULL
GROUP BY policy, model
