-- One row an attempt of the current run that is planned and has not ended.
--
-- It reads the versions of evo.attempts: they can be limited to the run before the newest version is known.
SELECT p.attempt_id,
       min(p.operator)   AS operator,
       min(p.parent_id)  AS parent_id,
       min(p.parent2_id) AS parent2_id
FROM evo.attempts_versions p
LEFT ANTI JOIN (
  SELECT attempt_id FROM evo.attempts_versions WHERE run_id = current_run() AND status <> 'planned') ended
  ON ended.attempt_id = p.attempt_id
WHERE p.run_id = current_run() AND p.status = 'planned'
GROUP BY p.attempt_id
