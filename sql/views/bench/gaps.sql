-- One row a graded submission and instance of its task: how far its score is from the published result.
--
-- gap = (score - sota) / |sota|, with its sign turned where lower is better: 0 is level with the published result, 0.1 a tenth
-- better. An instance without a valid output has the gap -1. There is no gap to a published result of 0 (NULL); such an
-- instance counts in no mean, and NatureBench tasks are imported without it.
SELECT g.submission_id,
       g.run_id,
       g.node_id,
       g.task_id,
       i.instance,
       i.metric,
       i.higher_is_better,
       i.sota,
       i.baseline,
       s.score,
       CASE WHEN i.sota = 0 THEN NULL
            WHEN s.score IS NULL THEN -1.0
            ELSE (CASE WHEN i.higher_is_better THEN 1.0 ELSE -1.0 END) * (s.score - i.sota) / abs(i.sota) END AS gap
FROM bench.grades g
JOIN gym.tasks t ON t.task_id = g.task_id
JOIN gym.instances i ON i.task_id = t.task_id AND i.package_hash = t.package_hash
LEFT JOIN bench.instance_scores s ON s.submission_id = g.submission_id AND s.instance = i.instance
