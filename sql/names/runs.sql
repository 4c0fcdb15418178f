-- Runs that a name may mean, with what they are; a run that says running but that nobody conducts was interrupted.
SELECT r.run_id AS id,
       concat(r.task_id, ', ', CASE WHEN r.status = 'running' AND l.owner IS NULL THEN 'interrupted' ELSE r.status END) AS what,
       r.created_at
FROM evo.runs r
LEFT JOIN sandbox.leases l ON l.kind = 'run' AND l.id = r.run_id AND l.is_live
