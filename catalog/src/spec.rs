//! Table specs: what tables exist, their columns, kinds and keys. One TOML file a table.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::Deserialize;

use crate::error::{Result, StoreError};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}
pub(crate) use embedded::MIGRATIONS;

/// Column that holds the commit a row came with.
pub const SEQ_COLUMN: &str = "_seq";
/// Column that holds the time of the commit a row came with.
pub const COMMITTED_AT_COLUMN: &str = "_committed_at";
/// Suffix of the twin table that shows every version with its commit.
pub const VERSIONS_SUFFIX: &str = "_versions";

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// 64-bit signed integer.
    Int,
    /// 64-bit float.
    Float,
    /// Boolean.
    Bool,
    /// Microseconds since the epoch, UTC.
    Timestamp,
    /// List of texts.
    List,
}

impl ColumnType {
    /// Name as written in a spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Timestamp => "timestamp",
            Self::List => "list",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [
            Self::Text,
            Self::Int,
            Self::Float,
            Self::Bool,
            Self::Timestamp,
            Self::List,
        ]
        .into_iter()
        .find(|t| t.as_str() == name)
    }

    /// Arrow type of the column.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::List => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        }
    }
}

/// How rows of a table are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// Append only: every row is read.
    Log,
    /// Every write is a new version; the newest version of a key is read.
    Keyed,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name.
    pub name: String,
    /// Type.
    pub column_type: ColumnType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// What the column holds.
    pub doc: String,
    /// Texts of any length, which are not kept decoded in memory.
    pub long: bool,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Schema, as `evo`.
    pub schema: String,
    /// Table, as `nodes`.
    pub table: String,
    /// Full name, as `evo.nodes`.
    pub name: String,
    /// What one row is.
    pub doc: String,
    /// How rows are read.
    pub kind: TableKind,
    /// Key columns.
    pub key: Vec<String>,
    /// Columns in order, without the hidden ones.
    pub columns: Vec<ColumnSpec>,
    public_schema: SchemaRef,
    full_schema: SchemaRef,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    doc: String,
    kind: TableKind,
    key: Vec<String>,
    columns: Vec<(String, String, String)>,
    #[serde(default)]
    long: Vec<String>,
}

impl TableSpec {
    /// Reads the spec of `schema.table` from TOML text.
    pub fn parse(schema: &str, table: &str, text: &str) -> Result<Self> {
        let name = format!("{schema}.{table}");
        let invalid = |reason: String| StoreError::InvalidSpec {
            table: name.clone(),
            reason,
        };
        let file: SpecFile = toml::from_str(text).map_err(|e| invalid(e.to_string()))?;
        let mut columns: Vec<ColumnSpec> = Vec::with_capacity(file.columns.len());
        for (column, ty, doc) in file.columns {
            let (ty, nullable) = match ty.strip_suffix('!') {
                Some(ty) => (ty, false),
                None => (ty.as_str(), true),
            };
            let column_type =
                ColumnType::parse(ty).ok_or_else(|| invalid(format!("column {column} has the unknown type {ty:?}")))?;
            if column.starts_with('_') || columns.iter().any(|c| c.name == column) {
                return Err(invalid(format!(
                    "column {column} is doubled or starts with an underscore"
                )));
            }
            columns.push(ColumnSpec {
                long: file.long.contains(&column),
                name: column,
                column_type,
                nullable,
                doc,
            });
        }
        if let Some(column) = file.long.iter().find(|name| !columns.iter().any(|c| &c.name == *name)) {
            return Err(invalid(format!("long column {column} does not exist")));
        }
        for key in &file.key {
            if !columns.iter().any(|c| &c.name == key && !c.nullable) {
                return Err(invalid(format!("key column {key} does not exist or may be NULL")));
            }
        }
        if columns.is_empty() || (file.kind == TableKind::Keyed && file.key.is_empty()) {
            return Err(invalid("a table needs columns, and a keyed table needs a key".into()));
        }
        let mut fields: Vec<Field> = columns
            .iter()
            .map(|c| Field::new(&c.name, c.column_type.data_type(), c.nullable))
            .collect();
        let public_schema = Arc::new(Schema::new(fields.clone()));
        fields.push(Field::new(SEQ_COLUMN, DataType::Int64, false));
        fields.push(Field::new(
            COMMITTED_AT_COLUMN,
            ColumnType::Timestamp.data_type(),
            false,
        ));
        let full_schema = Arc::new(Schema::new(fields));
        Ok(Self {
            schema: schema.into(),
            table: table.into(),
            name,
            doc: file.doc,
            kind: file.kind,
            key: file.key,
            columns,
            public_schema,
            full_schema,
        })
    }

    /// Arrow schema without the hidden columns.
    pub fn public_schema(&self) -> SchemaRef {
        Arc::clone(&self.public_schema)
    }

    /// Arrow schema with `_seq` and `_committed_at` at the end.
    pub fn full_schema(&self) -> SchemaRef {
        Arc::clone(&self.full_schema)
    }

    /// Position of a column.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Position of `_seq` in the full schema.
    pub fn seq_index(&self) -> usize {
        self.columns.len()
    }

    /// Positions of the key columns.
    pub fn key_indices(&self) -> Vec<usize> {
        self.key.iter().filter_map(|k| self.column_index(k)).collect()
    }
}

/// A set of table specs, by full name.
#[derive(Debug, Clone, Default)]
pub struct Specs {
    tables: BTreeMap<String, Arc<TableSpec>>,
}

impl Specs {
    /// The specs built into this version.
    pub fn builtin() -> Result<&'static Arc<Self>> {
        static BUILTIN: OnceLock<std::result::Result<Arc<Specs>, String>> = OnceLock::new();
        BUILTIN
            .get_or_init(|| {
                let mut specs = Specs::default();
                for (schema, table, text) in embedded::SPECS {
                    specs.insert(TableSpec::parse(schema, table, text).map_err(|e| e.to_string())?);
                }
                Ok(Arc::new(specs))
            })
            .as_ref()
            .map_err(|reason| StoreError::InvalidSpec {
                table: "built-in specs".into(),
                reason: reason.clone(),
            })
    }

    /// Adds or replaces a table.
    pub fn insert(&mut self, spec: TableSpec) {
        self.tables.insert(spec.name.clone(), Arc::new(spec));
    }

    /// The spec of a table by full name, or an error that lists the known ones.
    pub fn get(&self, name: &str) -> Result<&Arc<TableSpec>> {
        self.tables.get(name).ok_or_else(|| StoreError::UnknownTable {
            table: name.into(),
            known: self.tables.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// All specs in name order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TableSpec>> {
        self.tables.values()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn built_in_specs_are_valid_and_documented() {
        let specs = Specs::builtin().unwrap();
        assert!(specs.iter().count() >= 19);
        for spec in specs.iter() {
            assert!(
                !spec.doc.is_empty() && spec.columns.iter().all(|c| !c.doc.is_empty()),
                "{}",
                spec.name
            );
            assert!(!spec.table.ends_with(VERSIONS_SUFFIX));
        }
        let nodes = specs.get("evo.nodes").unwrap();
        assert_eq!(nodes.kind, TableKind::Log);
        assert!(!nodes.public_schema().field_with_name("task_id").unwrap().is_nullable());
        assert!(nodes.full_schema().field(nodes.seq_index()).name() == SEQ_COLUMN);
    }

    #[test]
    fn bad_specs_are_refused_by_name() {
        for (text, part) in [
            (
                "doc='d'\nkind='log'\nkey=[]\ncolumns=[['a','blob','x']]",
                "unknown type \"blob\"",
            ),
            (
                "doc='d'\nkind='keyed'\nkey=['b']\ncolumns=[['a','text!','x']]",
                "key column b",
            ),
            (
                "doc='d'\nkind='log'\nkey=[]\ncolumns=[['_a','text!','x']]",
                "underscore",
            ),
            (
                "doc='d'\nkind='log'\nkey=[]\ncolour=1\ncolumns=[['a','text!','x']]",
                "colour",
            ),
        ] {
            let error = TableSpec::parse("s", "t", text).unwrap_err().to_string();
            assert!(error.contains("s.t") && error.contains(part), "{error}");
        }
        let error = Specs::builtin().unwrap().get("evo.node").unwrap_err().to_string();
        assert!(error.contains("evo.node") && error.contains("evo.nodes"), "{error}");
    }
}
