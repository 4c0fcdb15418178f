-- One row a run on a task with published results that has ended by itself: the mean gap of its graded submission over the task's
-- instances.
--
-- matches: the gap is 0 or more. surpasses: it is more than 0.1. A run without a valid submission has the gap -1.
SELECT r.run_id,
       r.suite_id,
       r.repeat,
       r.task_id,
       r.policy,
       r.model,
       coalesce(r.valid, FALSE)         AS valid,
       i.instances,
       coalesce(d.valid_instances, 0)   AS valid_instances,
       coalesce(d.gap, -1.0)            AS gap,
       coalesce(d.gap >= 0, FALSE)      AS matches,
       coalesce(d.gap > 0.1, FALSE)     AS surpasses,
       r.validation_score,
       r.tokens,
       r.cost_usd,
       r.sandbox_seconds
FROM bench.report r
JOIN (
  SELECT t.task_id, count(*) AS instances
  FROM gym.tasks t
  JOIN gym.instances i ON i.task_id = t.task_id AND i.package_hash = t.package_hash
  GROUP BY t.task_id) i ON i.task_id = r.task_id
LEFT JOIN (
  SELECT submission_id, avg(gap) AS gap, count(score) AS valid_instances
  FROM bench.gaps
  GROUP BY submission_id) d ON d.submission_id = r.submission_id
WHERE r.status IN ('finished', 'failed')
