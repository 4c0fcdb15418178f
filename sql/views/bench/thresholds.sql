-- One row a task with a leaderboard: the scores that win medals, by the official places, and the median.
SELECT b.task_id,
       b.higher_is_better,
       b.teams,
       b.places['gold']                                              AS gold_rank,
       b.places['silver']                                            AS silver_rank,
       b.places['bronze']                                            AS bronze_rank,
       max(l.score) FILTER (WHERE l.rank = b.places['gold'])         AS gold,
       max(l.score) FILTER (WHERE l.rank = b.places['silver'])       AS silver,
       max(l.score) FILTER (WHERE l.rank = b.places['bronze'])       AS bronze,
       median(l.score)                                               AS median
FROM (
  SELECT t.task_id, t.package_hash, t.higher_is_better, count(*) AS teams, medal_positions(count(*)) AS places
  FROM gym.tasks t
  JOIN gym.leaderboards l ON l.task_id = t.task_id AND l.package_hash = t.package_hash
  GROUP BY t.task_id, t.package_hash, t.higher_is_better) b
JOIN gym.leaderboards l ON l.task_id = b.task_id AND l.package_hash = b.package_hash
GROUP BY b.task_id, b.higher_is_better, b.teams, b.places['gold'], b.places['silver'], b.places['bronze']
