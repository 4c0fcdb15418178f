-- One row a budget of the current run: its limit, what is spent, what running attempts have reserved, what remains.
--
-- A NULL limit is no limit.
SELECT resource,
       "limit",
       spent,
       reserved,
       "limit" - spent - reserved AS remaining
FROM system.budgets
WHERE scope = current_run()
