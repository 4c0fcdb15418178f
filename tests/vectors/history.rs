//! Rows of a hand-made history; what a case does not say gets a neutral value.

use std::collections::BTreeMap;

use clade_catalog::{ColumnType, Rows, Specs, Store, Txn, Value};

/// A cell of a row.
pub type Cell = (&'static str, Value);

/// Rows of one run under construction.
pub struct History {
    run_id: String,
    task_id: &'static str,
    tables: BTreeMap<&'static str, Rows>,
}

impl History {
    /// A run with options, on a task with this direction.
    pub fn new(run_id: &str, higher_is_better: bool, options: &serde_json::Value) -> Self {
        let mut history = Self {
            run_id: run_id.to_owned(),
            task_id: if higher_is_better { "higher" } else { "lower" },
            tables: BTreeMap::new(),
        };
        history.row("gym.tasks", [("higher_is_better", higher_is_better.into())]);
        history.row("evo.runs", [("options", options.to_string().into())]);
        history
    }

    /// Adds a row of the run.
    pub fn row(&mut self, table: &'static str, cells: impl IntoIterator<Item = Cell>) {
        let spec = Specs::builtin().unwrap().get(table).unwrap();
        let needed = spec.columns.iter().filter(|column| !column.nullable);
        let mut row: BTreeMap<&str, Value> = needed
            .map(|column| (column.name.as_str(), neutral(column.column_type)))
            .collect();
        for (name, value) in [("run_id", self.run_id.as_str()), ("task_id", self.task_id)] {
            if spec.column_index(name).is_some() {
                row.insert(name, value.into());
            }
        }
        row.extend(cells);
        let rows = self.tables.entry(table).or_insert_with(|| Rows::new(table).unwrap());
        rows.push(row).unwrap();
    }

    /// Adds a node with the links from its parents.
    pub fn node(&mut self, id: &str, parents: &[String], cells: impl IntoIterator<Item = Cell>) {
        for (role, parent) in ["parent", "parent2"].into_iter().zip(parents) {
            let link = [
                ("child_id", id.into()),
                ("parent_id", parent.into()),
                ("role", role.into()),
            ];
            self.row("evo.edges", link);
        }
        let parent = |place: usize| parents.get(place).cloned().into();
        let own = [
            ("node_id", id.into()),
            ("attempt_id", attempt(id).into()),
            ("parent_id", parent(0)),
            ("parent2_id", parent(1)),
        ];
        self.row("evo.nodes", own.into_iter().chain(cells));
    }

    /// Writes the rows.
    pub async fn commit(self, store: &Store) {
        let mut txn = Txn::new();
        for (table, rows) in self.tables {
            txn.append(table, rows);
        }
        store.commit(txn).await.unwrap();
    }
}

/// The attempt that a node came from.
pub fn attempt(node: &str) -> String {
    format!("attempt of {node}")
}

fn neutral(kind: ColumnType) -> Value {
    match kind {
        ColumnType::Text => Value::Text(String::new()),
        ColumnType::Int => Value::Int(0),
        ColumnType::Float => Value::Float(0.0),
        ColumnType::Bool => Value::Bool(false),
        ColumnType::Timestamp => Value::Timestamp(0),
        ColumnType::List => Value::List(Vec::new()),
    }
}
