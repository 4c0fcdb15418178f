-- One row a suite: its status, which is interrupted where it says running but nobody conducts it.
SELECT q.suite_id,
       CASE WHEN q.status = 'running' AND l.owner IS NULL THEN 'interrupted' ELSE q.status END AS status
FROM bench.suites q
LEFT JOIN sandbox.leases l ON l.kind = 'suite' AND l.id = concat('suite/', q.suite_id) AND l.is_live
