//! Models that statements make: kept in the store, so that every process sees them.

use async_trait::async_trait;
use clade_catalog::Store;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio_util::sync::CancellationToken;

use super::defaults::is_no_model;
use super::error::{EngineError, Result};
use super::open::Engine;
use crate::dialect::{CreateModel, DropModel};
use crate::model::{ModelError, ModelOptions, OptionsError, Origin, Sample, StoredModel, StoredModels};

/// Longest name of a model.
const LONGEST_NAME: usize = 128;

/// The models of a store.
#[derive(Debug)]
pub struct ModelsOfStore(pub Store);

type Error = Box<dyn std::error::Error + Send + Sync>;

fn read(row: &Row<'_>) -> rusqlite::Result<StoredModel> {
    Ok(StoredModel {
        name: row.get(0)?,
        options: row.get(1)?,
        created_at: row.get(2)?,
    })
}

fn find(conn: &Connection, name: &str) -> rusqlite::Result<Option<StoredModel>> {
    conn.prepare_cached("SELECT name, options, created_at FROM models WHERE name = ?1")?
        .query_row([name], read)
        .optional()
}

fn all(conn: &Connection) -> rusqlite::Result<Vec<StoredModel>> {
    conn.prepare_cached("SELECT name, options, created_at FROM models ORDER BY name")?
        .query_map([], read)?
        .collect()
}

#[async_trait]
impl StoredModels for ModelsOfStore {
    async fn find(&self, name: &str) -> Result<Option<StoredModel>, Error> {
        let name = name.to_owned();
        Ok(self.0.control_read(move |conn| find(conn, &name)).await?)
    }

    async fn all(&self) -> Result<Vec<StoredModel>, Error> {
        Ok(self.0.control_read(all).await?)
    }
}

impl Engine {
    /// Makes a model after checking its options; says whether it is made or replaced. Nothing is sent.
    ///
    /// # Errors
    /// When an option is unknown or wrong, or the name is taken.
    pub(super) async fn create_model(&self, create: CreateModel) -> Result<&'static str> {
        let CreateModel {
            or_replace,
            name,
            options,
        } = create;
        self.require_own_name(&name, "made")?;
        let refused = |error: OptionsError| EngineError::Request(format!("CREATE MODEL {name}: {error}"));
        let options = ModelOptions::from_statement(&options).map_err(refused)?;
        let access = self.scheduler().services().models.access();
        access.check(&options).map_err(|wrong| refused(wrong.into()))?;
        let options = options.to_json();
        let now = self.now();
        let replaced = self
            .store()
            .control(move |tx| {
                let exists = find(tx, &name)?.is_some();
                if exists && !or_replace {
                    return Err(clade_catalog::BoxError::from(format!(
                        "there is a model '{name}' already; CREATE OR REPLACE MODEL replaces it"
                    )));
                }
                tx.execute(
                    "INSERT OR REPLACE INTO models (name, options, created_at) VALUES (?1, ?2, ?3)",
                    params![name, options, now],
                )?;
                // A new definition starts without the pauses of the old one.
                tx.execute("DELETE FROM model_pauses WHERE model = ?1", params![name])?;
                Ok(exists)
            })
            .await?;
        Ok(if replaced { "replaced" } else { "made" })
    }

    /// Removes a model; what it wrote stays. Says whether there was one.
    ///
    /// # Errors
    /// When there is none, or it is not one of the store.
    pub(super) async fn drop_model(&self, drop: &DropModel) -> Result<bool> {
        self.require_own_name(&drop.name, "dropped")?;
        let name = drop.name.clone();
        let removed = self
            .store()
            .control(move |tx| {
                tx.execute("DELETE FROM model_pauses WHERE model = ?1", params![name])?;
                tx.execute("DELETE FROM models WHERE name = ?1", params![name])
            })
            .await?;
        if removed == 0 && !drop.if_exists {
            return Err(EngineError::Request(format!(
                "there is no model '{}' to drop; SHOW MODELS lists them",
                drop.name
            )));
        }
        Ok(removed > 0)
    }

    /// Refuses names that are not the store's to give.
    fn require_own_name(&self, name: &str, verb: &str) -> Result<()> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_.:-/".contains(letter);
        if !(1..=LONGEST_NAME).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(EngineError::Request(format!(
                "the name of a model is 1 to {LONGEST_NAME} letters, digits and the characters _ . : - /"
            )));
        }
        if verb == "made" && is_no_model(name) {
            return Err(EngineError::Request(format!(
                "'{name}' stands for no model where a memory model is named: choose another name"
            )));
        }
        match self.scheduler().services().models.fixed_origin(name) {
            None | Some(Origin::Store) => Ok(()),
            Some(Origin::BuiltIn) => Err(EngineError::Request(format!(
                "model '{name}' is built in and cannot be {verb} by a statement"
            ))),
            Some(Origin::Configuration) => Err(EngineError::Request(format!(
                "model '{name}' is set up in the configuration ([models.{name}]) and cannot be {verb} by a statement"
            ))),
        }
    }

    /// Asks a model for next to nothing; `None` for one that is built in and needs no asking.
    ///
    /// # Errors
    /// When there is no such model, or it does not answer.
    pub async fn probe_model(&self, name: &str) -> Result<Option<Sample>, ModelError> {
        let model = self.scheduler().services().models.get(name).await?;
        model.probe(&CancellationToken::new()).await
    }
}
