-- Runs that a name may mean, with what they are.
SELECT r.run_id AS id,
       concat(r.task_id, ', ', s.status) AS what,
       r.created_at
FROM evo.runs r
JOIN evo.run_states s ON s.run_id = r.run_id
