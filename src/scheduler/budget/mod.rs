//! Budgets: reserved in full before dispatch, settled with what was really spent in the commit of the outcome. All of it is
//! control SQL inside the commit's transaction, so two processes cannot both spend the last token.

pub mod booking;
pub mod remaining;
pub mod reserve;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Attempts that become nodes.
    Steps,
    /// Sandbox jobs.
    Jobs,
    /// Seconds in the sandbox.
    SandboxSeconds,
    /// Seconds in the model and the sandbox.
    ActiveSeconds,
    /// Wall seconds of the run.
    WallSeconds,
    /// Prompt and completion tokens.
    Tokens,
    /// US dollars.
    CostUsd,
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 7] = [
        Self::Steps,
        Self::Jobs,
        Self::SandboxSeconds,
        Self::ActiveSeconds,
        Self::WallSeconds,
        Self::Tokens,
        Self::CostUsd,
    ];

    /// Name as stored in `system.budgets`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Jobs => "jobs",
            Self::SandboxSeconds => "sandbox_seconds",
            Self::ActiveSeconds => "active_seconds",
            Self::WallSeconds => "wall_seconds",
            Self::Tokens => "tokens",
            Self::CostUsd => "cost_usd",
        }
    }
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the {resource} budget of {scope} is used up: {wanted} wanted, {left} left of {limit}")]
pub struct BudgetExhausted {
    /// Run or statement.
    pub scope: String,
    /// Resource name.
    pub resource: &'static str,
    /// Amount that was wanted.
    pub wanted: f64,
    /// Amount that is neither spent nor reserved.
    pub left: f64,
    /// The limit.
    pub limit: f64,
}

/// Fault of a budget operation.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Nothing is left.
    #[error(transparent)]
    Exhausted(#[from] BudgetExhausted),
    /// The control database failed.
    #[error("the budget tables could not be read or written: {0}")]
    Control(#[from] rusqlite::Error),
}

/// Sets the limit of a resource; resources without one are counted but not limited.
///
/// # Errors
/// When the control database fails.
pub fn set_limit(tx: &Transaction<'_>, scope: &str, resource: Resource, limit: Option<f64>) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO budgets (scope, resource, \"limit\", spent, reserved) VALUES (?1, ?2, ?3, 0, 0)
         ON CONFLICT (scope, resource) DO UPDATE SET \"limit\" = excluded.\"limit\"",
    )?
    .execute(params![scope, resource.as_str(), limit])?;
    Ok(())
}

/// Limit, spent and reserved amount of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// The limit; `None` = not limited.
    pub limit: Option<f64>,
    /// Spent by committed work.
    pub spent: f64,
    /// Reserved by work in flight.
    pub reserved: f64,
}

impl Balance {
    /// What is neither spent nor reserved; infinite without a limit.
    pub fn left(&self) -> f64 {
        self.limit
            .map_or(f64::INFINITY, |limit| (limit - self.spent - self.reserved).max(0.0))
    }
}

/// Whether a scope has budgets, so that its run or statement exists.
///
/// # Errors
/// When the control database fails.
pub fn is_known(conn: &Connection, scope: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM budgets WHERE scope = ?1")?
        .exists([scope])
}

/// Reads a balance; a resource that was never mentioned is unlimited and unspent.
///
/// # Errors
/// When the control database fails.
pub fn balance(conn: &Connection, scope: &str, resource: Resource) -> rusqlite::Result<Balance> {
    Ok(conn
        .prepare_cached("SELECT \"limit\", spent, reserved FROM budgets WHERE scope = ?1 AND resource = ?2")?
        .query_row(params![scope, resource.as_str()], |row| {
            Ok(Balance {
                limit: row.get(0)?,
                spent: row.get(1)?,
                reserved: row.get(2)?,
            })
        })
        .optional()?
        .unwrap_or(Balance {
            limit: None,
            spent: 0.0,
            reserved: 0.0,
        }))
}

/// Reserves `amount`, all or nothing.
///
/// # Errors
/// `Exhausted` when less than `amount` is left.
pub fn reserve(
    tx: &Transaction<'_>,
    attempt_id: &str,
    scope: &str,
    resource: Resource,
    amount: f64,
) -> Result<(), BudgetError> {
    let balance = balance(tx, scope, resource)?;
    // Sums of fractions drift by rounding; a billionth of the limit is no overspend.
    let slack = balance.limit.map_or(0.0, |limit| limit.abs() * 1e-9);
    if amount > balance.left() + slack {
        return Err(BudgetExhausted {
            scope: scope.to_owned(),
            resource: resource.as_str(),
            wanted: amount,
            left: balance.left(),
            limit: balance.limit.unwrap_or(f64::INFINITY),
        }
        .into());
    }
    hold(tx, attempt_id, scope, resource, amount)?;
    Ok(())
}

fn hold(tx: &Transaction<'_>, attempt_id: &str, scope: &str, resource: Resource, amount: f64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO budgets (scope, resource, \"limit\", spent, reserved) VALUES (?1, ?2, NULL, 0, ?3)
         ON CONFLICT (scope, resource) DO UPDATE SET reserved = reserved + excluded.reserved",
    )?
    .execute(params![scope, resource.as_str(), amount])?;
    tx.prepare_cached(
        "INSERT INTO reservations (attempt_id, scope, resource, amount) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (attempt_id, scope, resource) DO UPDATE SET amount = amount + excluded.amount",
    )?
    .execute(params![attempt_id, scope, resource.as_str(), amount])?;
    Ok(())
}

/// Gives back a part of what an attempt holds, and no more than it holds: somebody else may have settled it meanwhile.
///
/// # Errors
/// When the control database fails.
pub fn give_back(
    tx: &Transaction<'_>,
    attempt_id: &str,
    scope: &str,
    resource: Resource,
    amount: f64,
) -> rusqlite::Result<()> {
    let held: Option<f64> = tx
        .prepare_cached("SELECT amount FROM reservations WHERE attempt_id = ?1 AND scope = ?2 AND resource = ?3")?
        .query_row(params![attempt_id, scope, resource.as_str()], |row| row.get(0))
        .optional()?;
    match held {
        Some(held) => hold(tx, attempt_id, scope, resource, -amount.min(held)),
        None => Ok(()),
    }
}

/// Gives back everything an attempt holds.
///
/// # Errors
/// When the control database fails.
pub fn release(tx: &Transaction<'_>, attempt_id: &str) -> rusqlite::Result<()> {
    tx.prepare_cached(
        // What is left of the last reservation by rounding is no reservation.
        "UPDATE budgets SET reserved = CASE WHEN reserved > held * (1 + 1e-9) THEN reserved - held ELSE 0 END
         FROM (SELECT scope, resource, sum(amount) AS held FROM reservations WHERE attempt_id = ?1 GROUP BY 1, 2) r
         WHERE r.scope = budgets.scope AND r.resource = budgets.resource",
    )?
    .execute(params![attempt_id])?;
    tx.prepare_cached("DELETE FROM reservations WHERE attempt_id = ?1")?
        .execute(params![attempt_id])?;
    Ok(())
}

/// Gives back what an attempt holds of some resources only, so that a new try reserves them afresh.
///
/// # Errors
/// When the control database fails.
pub fn release_only(tx: &Transaction<'_>, attempt_id: &str, resources: &[Resource]) -> rusqlite::Result<()> {
    for resource in resources {
        tx.prepare_cached(
            "UPDATE budgets SET reserved = CASE WHEN reserved > held * (1 + 1e-9) THEN reserved - held ELSE 0 END
             FROM (SELECT scope, sum(amount) AS held FROM reservations
                   WHERE attempt_id = ?1 AND resource = ?2 GROUP BY 1) r
             WHERE r.scope = budgets.scope AND budgets.resource = ?2",
        )?
        .execute(params![attempt_id, resource.as_str()])?;
        tx.prepare_cached("DELETE FROM reservations WHERE attempt_id = ?1 AND resource = ?2")?
            .execute(params![attempt_id, resource.as_str()])?;
    }
    Ok(())
}

/// Books what was spent.
///
/// # Errors
/// When the control database fails.
pub fn spend(tx: &Transaction<'_>, scope: &str, resource: Resource, amount: f64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO budgets (scope, resource, \"limit\", spent, reserved) VALUES (?1, ?2, NULL, ?3, 0)
         ON CONFLICT (scope, resource) DO UPDATE SET spent = spent + excluded.spent",
    )?
    .execute(params![scope, resource.as_str(), amount])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rusqlite::Connection;

    use super::*;

    #[test]
    fn no_more_is_given_back_than_is_held() {
        let mut database = Connection::open_in_memory().unwrap();
        database
            .execute_batch(include_str!("../../../catalog/migrations/0001_store.sql"))
            .unwrap();
        let tx = database.transaction().unwrap();
        reserve(&tx, "a", "run", Resource::Tokens, 5.0).unwrap();
        reserve(&tx, "a", "run", Resource::Tokens, 2.0).unwrap();
        let reserved = || balance(&tx, "run", Resource::Tokens).unwrap().reserved;
        give_back(&tx, "a", "run", Resource::Tokens, 2.0).unwrap();
        assert_eq!(reserved(), 5.0);
        give_back(&tx, "a", "run", Resource::Tokens, 9.0).unwrap();
        assert_eq!(reserved(), 0.0);
        release(&tx, "a").unwrap();
        give_back(&tx, "a", "run", Resource::Tokens, 1.0).unwrap();
        assert_eq!(reserved(), 0.0);
    }

    #[test]
    fn nothing_is_left_of_reservations_that_were_given_back() {
        let mut database = Connection::open_in_memory().unwrap();
        database
            .execute_batch(include_str!("../../../catalog/migrations/0001_store.sql"))
            .unwrap();
        let tx = database.transaction().unwrap();
        // 0.1 + 0.2 + 0.3 - 0.1 - 0.2 - 0.3 is not 0.
        let amounts = [("a", 0.1), ("b", 0.2), ("c", 0.3)];
        for (attempt, amount) in amounts {
            reserve(&tx, attempt, "run", Resource::CostUsd, amount).unwrap();
            reserve(&tx, attempt, "run", Resource::Steps, 1.0).unwrap();
        }
        for (attempt, _) in amounts {
            release_only(&tx, attempt, &[Resource::CostUsd]).unwrap();
        }
        assert_eq!(balance(&tx, "run", Resource::CostUsd).unwrap().reserved, 0.0);
        assert_eq!(balance(&tx, "run", Resource::Steps).unwrap().reserved, 3.0);
        for (attempt, left) in [("a", 2.0), ("b", 1.0), ("c", 0.0)] {
            release(&tx, attempt).unwrap();
            assert_eq!(balance(&tx, "run", Resource::Steps).unwrap().reserved, left);
        }
    }
}
