-- How policies did with the same budget: one row a task and policy, means over the seeds; then one row a policy.
--
-- validation: best validation score. rank: place of the graded submission on the task's leaderboard as a share of its teams, 0 is the
-- best. new_bests: times that a search found something better than all before. place: mean place of the policy among the policies by
-- best validation score, within one task and seed, ties sharing the mean of their places.
CREATE VIEW searches AS
SELECT r.task_id, r.policy, r.seed, t.metric, t.higher_is_better,
       n.nodes, n.best * CASE WHEN t.higher_is_better THEN 1 ELSE -1 END AS validation, n.best, i.new_bests,
       CAST(g.rank - 1 AS DOUBLE) / nullif(g.teams, 0)                     AS rank_share,
       CASE WHEN n.best IS NOT NULL THEN
         rank() OVER (PARTITION BY r.task_id, r.seed ORDER BY n.best DESC NULLS LAST)
         + (count(*) OVER (PARTITION BY r.task_id, r.seed, n.best) - 1) / 2.0 END AS place
FROM evo.runs r
JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN bench.report g ON g.run_id = r.run_id
LEFT JOIN (SELECT run_id, count(*) AS nodes, max(signed_score) AS best FROM evo.nodes GROUP BY run_id) n ON n.run_id = r.run_id
LEFT JOIN (SELECT run_id, count(*) AS new_bests FROM evo.board_incumbents GROUP BY run_id) i ON i.run_id = r.run_id
WHERE r.status = 'finished';

SELECT task_id AS task, metric || CASE WHEN higher_is_better THEN ' ↑' ELSE ' ↓' END AS metric, policy,
       round(avg(validation), 4) AS validation,
       round(avg(rank_share), 3) AS rank,
       round(avg(new_bests), 1)  AS new_bests,
       round(avg(nodes), 1)      AS nodes,
       round(avg(place), 2)      AS place
FROM searches
GROUP BY task_id, metric, higher_is_better, policy
ORDER BY task_id, place;

SELECT policy,
       count(*)                    AS searches,
       round(avg(place), 2)        AS place,
       round(stddev(place) / sqrt(count(*)), 2) AS place_error,
       round(avg(rank_share), 3)   AS rank,
       round(avg(new_bests), 1)    AS new_bests,
       round(avg(nodes), 1)        AS nodes
FROM searches
GROUP BY policy
ORDER BY place;
