-- The node that a run ends with: the best score that a program printed about itself, the earliest of equals. A program whose
-- submission was refused is none of them, whatever it printed.
-- Parameter: $run.
SELECT n.node_id, n.code, n.seed
FROM evo.nodes n
JOIN gym.tasks t ON t.task_id = n.task_id
WHERE n.run_id = $run AND n.code IS NOT NULL AND n.status = 'success'
  AND signed_score(n.self_reported_score, t.higher_is_better) IS NOT NULL
ORDER BY signed_score(n.self_reported_score, t.higher_is_better) DESC, n.step
LIMIT 1
