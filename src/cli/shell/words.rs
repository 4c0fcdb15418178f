//! Words that the shell completes: keywords, tables, columns, functions, policies, operators, models.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::operators::Operator;

/// Keywords of SQL and of our own statements.
pub(super) const KEYWORDS: [&str; 97] = [
    "ALL",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "ASYNC",
    "BETWEEN",
    "BY",
    "CANCEL",
    "CASE",
    "CAST",
    "CHECKPOINT",
    "COMMENT",
    "COPY",
    "CREATE",
    "CROSS",
    "CUBE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EVOLVE",
    "EXCEPT",
    "EXISTS",
    "EXPAND",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FIRST",
    "FOLLOWING",
    "FROM",
    "FULL",
    "GROUP",
    "GROUPING",
    "HAVING",
    "IF",
    "ILIKE",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MODEL",
    "MODELS",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OPTIMIZE",
    "OPTIONS",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "POLICIES",
    "POLICY",
    "PRECEDING",
    "RANGE",
    "RECURSIVE",
    "REPLACE",
    "RESUME",
    "RIGHT",
    "ROLLUP",
    "ROW",
    "ROWS",
    "RUN",
    "RUNS",
    "SANDBOX",
    "SELECT",
    "SET",
    "SHOW",
    "TABLE",
    "TASK",
    "THEN",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Everything that can be completed.
#[derive(Debug, Default, Clone)]
pub(super) struct Words {
    /// Words that may stand anywhere, sorted.
    general: BTreeSet<String>,
    /// What may follow a name and a dot: tables of a schema, columns of a table.
    members: BTreeMap<String, BTreeSet<String>>,
}

impl Words {
    /// Reads the catalog.
    pub async fn load(client: &Client) -> Result<Self, CliError> {
        let mut words = Self::default();
        words
            .general
            .extend(Operator::ALL.iter().map(|operator| operator.as_str().to_owned()));
        let columns = "SELECT table_schema, table_name, column_name FROM information_schema.columns \
                       WHERE table_schema <> 'information_schema'";
        for row in client.rows(columns).await?.iter() {
            words.add_column(
                &row.text("table_schema")?,
                &row.text("table_name")?,
                &row.text("column_name")?,
            );
        }
        for sql in [
            "SELECT name FROM system.functions",
            "SELECT name FROM system.models",
            "SELECT name FROM system.policies",
            "SELECT task_id AS name FROM gym.tasks",
        ] {
            for row in client.rows(sql).await?.iter() {
                words.general.insert(row.text("name")?);
            }
        }
        Ok(words)
    }

    fn add_column(&mut self, schema: &str, table: &str, column: &str) {
        self.general.insert(format!("{schema}.{table}"));
        self.general.insert(column.to_owned());
        self.members
            .entry(schema.to_owned())
            .or_default()
            .insert(table.to_owned());
        self.members
            .entry(table.to_owned())
            .or_default()
            .insert(column.to_owned());
        self.members
            .entry(format!("{schema}.{table}"))
            .or_default()
            .insert(column.to_owned());
    }

    /// Words that go on from `written`. Keywords take the case that was begun with.
    pub fn complete(&self, written: &str) -> Vec<String> {
        if let Some((owner, part)) = written.rsplit_once('.')
            && let Some(members) = self.members.get(&owner.to_lowercase())
        {
            let part = part.to_lowercase();
            return members
                .iter()
                .filter(|name| name.starts_with(&part))
                .map(|name| format!("{owner}.{name}"))
                .collect();
        }
        let lower = written.to_lowercase();
        let mut found: Vec<String> = self
            .general
            .iter()
            .filter(|word| word.starts_with(&lower))
            .cloned()
            .collect();
        if !written.is_empty() {
            let is_lower = written.chars().all(|c| !c.is_uppercase());
            let keywords = KEYWORDS
                .iter()
                .filter(|keyword| keyword.starts_with(&written.to_uppercase()));
            found.extend(keywords.map(|word| {
                if is_lower {
                    word.to_lowercase()
                } else {
                    (*word).to_owned()
                }
            }));
        }
        found.sort();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let mut words = Words::default();
        for (schema, table, column) in [
            ("evo", "nodes", "node_id"),
            ("evo", "nodes", "score"),
            ("evo", "runs", "run_id"),
            ("gym", "tasks", "task_id"),
        ] {
            words.add_column(schema, table, column);
        }
        words.general.insert("softmax".to_owned());
        words
    }

    #[test]
    fn names_follow_their_owner() {
        assert_eq!(words().complete("evo."), ["evo.nodes", "evo.runs"]);
        assert_eq!(words().complete("evo.nodes.s"), ["evo.nodes.score"]);
        assert_eq!(words().complete("nodes.n"), ["nodes.node_id"]);
        assert_eq!(words().complete("ev"), ["evo.nodes", "evo.runs", "evolve"]);
    }

    #[test]
    fn keywords_take_the_case_that_was_begun_with() {
        assert_eq!(words().complete("SEL"), ["SELECT"]);
        assert_eq!(words().complete("sel"), ["select"]);
        assert_eq!(words().complete("so"), ["softmax"]);
        assert!(words().complete("zzz").is_empty());
    }
}
