-- One row a resource of a run: its limit, NULL when there is none, and what is spent and reserved.
-- Parameters: $run.
SELECT resource, "limit", spent, reserved
FROM system.budgets
WHERE scope = $run
