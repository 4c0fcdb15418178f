//! Durable attempts, leases, budgets, the search loop.
