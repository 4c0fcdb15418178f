//! The shipped views and policies: embedded files, each with its documentation in the comment at its top.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use datafusion::sql::parser::DFParser;
use datafusion::sql::resolve::resolve_table_references;

include!(concat!(env!("OUT_DIR"), "/sql_files.rs"));

/// A shipped view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewSource {
    /// Schema.
    pub schema: &'static str,
    /// Name.
    pub name: &'static str,
    /// Query, with its comments.
    pub sql: &'static str,
    /// What one row is, and what the columns mean where that is not plain.
    pub doc: String,
}

/// A shipped policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShippedPolicy {
    /// Name.
    pub name: &'static str,
    /// Query, with its comments.
    pub sql: &'static str,
    /// What it chooses.
    pub doc: String,
}

/// The shipped views, each after the views it reads.
pub fn views() -> &'static [ViewSource] {
    static VIEWS: LazyLock<Vec<ViewSource>> = LazyLock::new(|| {
        let mut waiting: Vec<(ViewSource, BTreeSet<String>)> = VIEW_FILES
            .iter()
            .map(|&(schema, name, sql)| {
                (
                    ViewSource {
                        schema,
                        name,
                        sql,
                        doc: header(sql),
                    },
                    relations(sql),
                )
            })
            .collect();
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let names: BTreeSet<String> = waiting
                .iter()
                .map(|(view, _)| format!("{}.{}", view.schema, view.name))
                .collect();
            let (ready, blocked): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|(_, reads)| reads.is_disjoint(&names));
            if ready.is_empty() {
                // A circle cannot be planned in any order; planning names the view that is missing.
                ordered.extend(blocked.into_iter().map(|(view, _)| view));
                break;
            }
            ordered.extend(ready.into_iter().map(|(view, _)| view));
            waiting = blocked;
        }
        ordered
    });
    &VIEWS
}

/// The shipped policies by name.
pub fn shipped() -> &'static [ShippedPolicy] {
    static POLICIES: LazyLock<Vec<ShippedPolicy>> = LazyLock::new(|| {
        POLICY_FILES
            .iter()
            .map(|&(name, sql)| ShippedPolicy {
                name,
                sql,
                doc: header(sql),
            })
            .collect()
    });
    &POLICIES
}

/// Schema-qualified names that a query reads.
pub fn relations(sql: &str) -> BTreeSet<String> {
    let Ok(mut statements) = DFParser::parse_sql(sql) else {
        return BTreeSet::new();
    };
    let Some(statement) = statements.pop_front() else {
        return BTreeSet::new();
    };
    resolve_table_references(&statement, true)
        .map(|(relations, _)| relations.into_iter().map(|relation| relation.to_string()).collect())
        .unwrap_or_default()
}

/// The comment at the top of a file, without its dashes.
fn header(sql: &str) -> String {
    let lines: Vec<&str> = sql
        .lines()
        .map_while(|line| line.strip_prefix("--"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n").trim().to_owned()
}

/// A query without the comment at its top, where that is the given text.
pub fn without_header<'a>(sql: &'a str, comment: &str) -> &'a str {
    if comment.is_empty() || header(sql) != comment {
        return sql;
    }
    let length: usize = sql
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("--"))
        .map(str::len)
        .sum();
    &sql[length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_come_after_what_they_read() {
        let names: Vec<String> = views()
            .iter()
            .map(|view| format!("{}.{}", view.schema, view.name))
            .collect();
        assert_eq!(names.len(), VIEW_FILES.len());
        for (index, view) in views().iter().enumerate() {
            for read in relations(view.sql) {
                assert!(!names[index..].contains(&read), "{} reads {read}", names[index]);
            }
        }
    }

    #[test]
    fn everything_is_documented() {
        for view in views() {
            assert!(!view.doc.is_empty(), "{}.{}", view.schema, view.name);
        }
        for policy in shipped() {
            assert!(!policy.doc.is_empty(), "{}", policy.name);
        }
    }

    #[test]
    fn the_header_is_the_comment_at_the_top() {
        assert_eq!(without_header("-- One.\n-- Two.\nSELECT 1", "One.\nTwo."), "SELECT 1");
        assert_eq!(without_header("-- One.\nSELECT 1", "Two."), "-- One.\nSELECT 1");
        assert_eq!(header("-- One.\n--\n-- Two.\nSELECT 1 -- no\n-- no"), "One.\n\nTwo.");
    }
}
