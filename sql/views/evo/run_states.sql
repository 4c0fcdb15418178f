-- One row a run: its status, which is interrupted where it says running but nobody conducts it.
SELECT r.run_id,
       CASE WHEN r.status = 'running' AND l.owner IS NULL THEN 'interrupted' ELSE r.status END AS status
FROM evo.runs r
LEFT JOIN sandbox.leases l ON l.kind = 'run' AND l.id = r.run_id AND l.is_live
