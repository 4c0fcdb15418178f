-- One row an attempt of the current run that is planned and has not ended.
--
-- It reads the versions of evo.attempts: they can be limited to the run before the newest version is known.
SELECT attempt_id,
       min(operator)   AS operator,
       min(parent_id)  AS parent_id,
       min(parent2_id) AS parent2_id
FROM evo.attempts_versions
WHERE run_id = current_run()
GROUP BY attempt_id
HAVING bool_and(status = 'planned')
