//! Policies of a store: shipped ones and the user's own, as views of the schema `policies`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use clade_catalog::{Snapshot, Store, VirtualTable};
use datafusion::catalog::SchemaProvider;
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::ViewTable;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::error::{EngineError, Result};
use super::open::Engine;
use crate::dialect::{CreatePolicy, DropPolicy};
use crate::policy::{self, check_policy};
use crate::scheduler::sha256_hex;
use crate::session::{DEFAULT_SCHEMA, POLICY_SCHEMA};

/// The policies that are registered as views, so that a change by another process is seen.
#[derive(Debug, Default)]
pub struct PolicyCache(Mutex<Registered>);

#[derive(Debug, Default, Clone)]
struct Registered {
    /// Changes of the store's policies that the views contain; `None` before the first look.
    version: Option<i64>,
    /// The policies.
    views: Vec<Policy>,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Name.
    pub name: String,
    /// Query.
    pub sql: String,
    /// What it does.
    pub comment: Option<String>,
    /// Shipped with the engine, or the user's own.
    pub is_shipped: bool,
    /// When the user made it, microseconds UTC.
    pub created_at: Option<i64>,
}

impl Policy {
    /// The statement that makes the policy.
    pub fn create_statement(&self) -> String {
        // A shipped policy has its comment at the top of its query; once is enough.
        let sql = match &self.comment {
            Some(comment) => policy::without_header(&self.sql, comment),
            None => &self.sql,
        };
        CreatePolicy::text(&self.name, self.comment.as_deref(), sql)
    }
}

fn shipped() -> impl Iterator<Item = Policy> {
    policy::shipped().iter().map(|shipped| Policy {
        name: shipped.name.to_owned(),
        sql: shipped.sql.to_owned(),
        comment: Some(shipped.doc.to_owned()),
        is_shipped: true,
        created_at: None,
    })
}

fn own(conn: &Connection) -> rusqlite::Result<Vec<Policy>> {
    conn.prepare_cached("SELECT name, sql, comment, created_at FROM policies ORDER BY name")?
        .query_map([], |row| {
            Ok(Policy {
                name: row.get(0)?,
                sql: row.get(1)?,
                comment: row.get(2)?,
                is_shipped: false,
                created_at: row.get(3)?,
            })
        })?
        .collect()
}

/// All policies of a store: the shipped ones, then the user's own.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn policies_of(store: &Store) -> clade_catalog::Result<Vec<Policy>> {
    let mut policies: Vec<Policy> = shipped().collect();
    policies.extend(store.control_read(own).await?);
    Ok(policies)
}

impl Engine {
    /// The policy of a name.
    ///
    /// # Errors
    /// When there is none; the message lists the known ones.
    pub async fn policy(&self, name: &str) -> Result<Policy> {
        let policies = policies_of(self.store()).await?;
        let known: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        policies
            .iter()
            .find(|policy| policy.name == name)
            .cloned()
            .ok_or_else(|| {
                EngineError::Request(format!(
                    "there is no policy '{name}'; the policies are {}",
                    known.join(", ")
                ))
            })
    }

    /// Brings the views of the user's own policies up to date with the store, which another process may have changed: the
    /// snapshot says whether there is anything to do.
    pub(super) async fn refresh_policies(&self, snapshot: &Snapshot) -> Result<()> {
        let version = Some(snapshot.policies_version());
        let registered = self.policy_cache.0.lock().clone();
        if registered.version == version {
            return Ok(());
        }
        let registered = registered.views;
        let stored = self.store().control_read(own).await?;
        if stored == registered {
            self.policy_cache.0.lock().version = version;
            return Ok(());
        }
        let schema = self.policy_schema()?;
        for gone in registered
            .iter()
            .filter(|policy| !stored.iter().any(|other| other.name == policy.name))
        {
            schema.deregister_table(&gone.name)?;
        }
        // A policy may read another: each is planned after those that plan, until nothing more does. What does not plan, because
        // something it reads is gone, must not keep the others from their work.
        let mut waiting: Vec<&Policy> = stored.iter().collect();
        loop {
            let mut unplanned = Vec::new();
            let before = waiting.len();
            for policy in waiting {
                match self.base_state().create_logical_plan(&policy.sql).await {
                    Ok(plan) => {
                        let view = ViewTable::new(plan, Some(policy.sql.clone()));
                        schema.register_table(policy.name.clone(), Arc::new(view))?;
                        schema.set_doc(&policy.name, policy.comment.as_deref().unwrap_or_default());
                    }
                    Err(error) => unplanned.push((policy, error)),
                }
            }
            if unplanned.is_empty() || unplanned.len() == before {
                for (policy, error) in unplanned {
                    tracing::warn!(policy = %policy.name, %error, "the policy cannot be used: something it reads is gone");
                    schema.deregister_table(&policy.name)?;
                }
                break;
            }
            waiting = unplanned.into_iter().map(|(policy, _)| policy).collect();
        }
        self.queries().forget_plans();
        *self.policy_cache.0.lock() = Registered { version, views: stored };
        Ok(())
    }

    fn policy_schema(&self) -> Result<&Arc<clade_catalog::StoreSchema>> {
        self.catalog
            .get(POLICY_SCHEMA)
            .ok_or_else(|| EngineError::Config("the catalog has no policies".to_owned()))
    }

    /// Makes a policy after checking its contract; says whether it was made or took the place of one.
    pub(super) async fn create_policy(&self, create: CreatePolicy) -> Result<&'static str> {
        let CreatePolicy {
            or_replace,
            name,
            comment,
            query,
            sql,
        } = create;
        if shipped().any(|policy| policy.name == name) {
            return Err(EngineError::Request(format!(
                "policy '{name}' is shipped with Clade and cannot be replaced; give yours another name"
            )));
        }
        let mut state = self.base_state().clone();
        state.config_mut().options_mut().sql_parser.collect_spans = true;
        let query = DataFusionStatement::Statement(Box::new(SqlStatement::Query(query)));
        let plan = state.statement_to_plan(query).await?;
        check_policy(&name, &plan)?;
        self.check_reads(&name, &sql).await?;
        let (hash, now) = (sha256_hex(sql.as_bytes()), self.now());
        let replaced = self
            .store()
            .control(move |tx| {
                let exists = tx.prepare_cached("SELECT 1 FROM policies WHERE name = ?1")?.exists([&name])?;
                if exists && !or_replace {
                    return Err(clade_catalog::BoxError::from(format!(
                        "there is a policy '{name}' already; CREATE OR REPLACE POLICY replaces it"
                    )));
                }
                tx.execute(
                    "UPDATE policy_versions SET superseded_at = ?2 WHERE name = ?1 AND superseded_at IS NULL",
                    params![name, now],
                )?;
                tx.execute(
                    "INSERT INTO policy_versions (name, version, sql, comment, sha256, created_at)
                     SELECT ?1, 1 + coalesce(max(version), 0), ?2, ?3, ?4, ?5 FROM policy_versions WHERE name = ?1",
                    params![name, sql, comment, hash, now],
                )?;
                tx.execute(
                    "INSERT OR REPLACE INTO policies (name, sql, comment, sha256, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![name, sql, comment, hash, now],
                )?;
                Ok(exists)
            })
            .await?;
        let snapshot = self.store().snapshot(None).await?;
        self.refresh_policies(&snapshot).await?;
        Ok(if replaced { "replaced" } else { "made" })
    }

    /// A policy reads what every session has, and not itself.
    async fn check_reads(&self, name: &str, sql: &str) -> Result<()> {
        let own = self.store().control_read(own).await?;
        let mut waiting: Vec<String> = policy::relations(sql).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(relation) = waiting.pop() {
            let relation = relation.trim_start_matches("clade.");
            let (schema, table) = relation.split_once('.').unwrap_or((DEFAULT_SCHEMA, relation));
            if schema == POLICY_SCHEMA && table == name {
                return Err(EngineError::Request(format!("policy '{name}' would read itself")));
            }
            let policy = own
                .iter()
                .find(|policy| schema == POLICY_SCHEMA && policy.name == table);
            if let Some(policy) = policy
                && seen.insert(table.to_owned())
            {
                waiting.extend(policy::relations(&policy.sql));
            }
            let is_fixed = self.catalog.get(schema).is_some_and(|tables| tables.is_fixed(table));
            if policy.is_none() && !is_fixed {
                return Err(EngineError::Request(format!(
                    "policy '{name}' reads {relation}, which is made for this session only, so no other session could use it; \
                     write its query into the policy"
                )));
            }
        }
        Ok(())
    }

    /// Removes a policy; its versions stay in the store for the runs that used them. Says whether there was one.
    pub(super) async fn drop_policy(&self, drop: &DropPolicy) -> Result<bool> {
        if shipped().any(|policy| policy.name == drop.name) {
            return Err(EngineError::Request(format!(
                "policy '{}' is shipped with Clade and cannot be dropped",
                drop.name
            )));
        }
        let dropped = format!("{POLICY_SCHEMA}.{}", drop.name);
        let own = self.store().control_read(own).await?;
        let readers: Vec<&str> = own
            .iter()
            .filter(|policy| {
                let reads = policy::relations(&policy.sql);
                reads.iter().any(|name| name.trim_start_matches("clade.") == dropped)
            })
            .map(|policy| policy.name.as_str())
            .collect();
        if !readers.is_empty() {
            return Err(EngineError::Request(format!(
                "policy '{}' is read by {}: drop that first",
                drop.name,
                readers.join(", ")
            )));
        }
        let (name, now) = (drop.name.clone(), self.now());
        let removed = self
            .store()
            .control(move |tx| {
                tx.execute(
                    "UPDATE policy_versions SET superseded_at = ?2 WHERE name = ?1 AND superseded_at IS NULL",
                    params![name, now],
                )?;
                tx.execute("DELETE FROM policies WHERE name = ?1", params![name])
            })
            .await?;
        if removed == 0 && !drop.if_exists {
            return Err(EngineError::Request(format!(
                "there is no policy '{}' to drop",
                drop.name
            )));
        }
        let snapshot = self.store().snapshot(None).await?;
        self.refresh_policies(&snapshot).await?;
        Ok(removed > 0)
    }
}

/// `system.policies`.
#[derive(Debug)]
pub struct PoliciesTable(pub Store);

#[async_trait]
impl VirtualTable for PoliciesTable {
    fn name(&self) -> &str {
        "policies"
    }

    fn doc(&self) -> &str {
        "One row a selection policy."
    }

    fn schema(&self) -> SchemaRef {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("origin", DataType::Utf8, false),
            Field::new("comment", DataType::Utf8, true),
            Field::new("sql", DataType::Utf8, false),
            Field::new("created_at", timestamp, true),
        ]))
    }

    fn column_docs(&self) -> &'static [&'static str] {
        &[
            "Name after WITH POLICY, and of the view in the schema policies.",
            "shipped, or own for one that was made in this store.",
            "What it chooses.",
            "Its query.",
            "Time at which it was made; NULL when it is shipped.",
        ]
    }

    async fn rows(&self) -> DataFusionResult<RecordBatch> {
        let policies = policies_of(&self.0).await?;
        let texts = |values: Vec<Option<String>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let origin = |policy: &Policy| if policy.is_shipped { "shipped" } else { "own" }.to_owned();
        let created =
            TimestampMicrosecondArray::from(policies.iter().map(|policy| policy.created_at).collect::<Vec<_>>());
        let columns: Vec<ArrayRef> = vec![
            texts(policies.iter().map(|policy| Some(policy.name.clone())).collect()),
            texts(policies.iter().map(|policy| Some(origin(policy))).collect()),
            texts(policies.iter().map(|policy| policy.comment.clone()).collect()),
            texts(policies.iter().map(|policy| Some(policy.sql.clone())).collect()),
            Arc::new(created.with_timezone("UTC")),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
