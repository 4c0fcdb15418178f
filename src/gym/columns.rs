//! Which column of a package's tables is the identifier, and which ones are targets.

use crate::gym::table::Table;

/// Columns of a package by their role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// Identifier of the submission; `None` when rows are matched by their order.
    pub id: Option<String>,
    /// Columns of the submission that a program has to fill.
    pub predicted: Vec<String>,
    /// Columns of the answers other than the identifier.
    pub targets: Vec<String>,
}

impl Columns {
    /// Finds the roles from the headers of the sample submission, the test table and the answers.
    pub fn find(sample: &Table, test: &Table, answers: &Table) -> Self {
        let id = identifier(sample, test);
        let others = |table: &Table| {
            table
                .columns()
                .iter()
                .filter(|c| id.as_ref() != Some(c))
                .cloned()
                .collect::<Vec<_>>()
        };
        Self {
            predicted: others(sample),
            targets: others(answers),
            id,
        }
    }
}

/// Whether a name alone says that a column identifies its row: `id`, `index`, or an end in `_id`, `Id` or `ID`.
/// A plain end in `id` says nothing (`paid`, `valid`).
pub fn is_identifier_name(name: &str) -> bool {
    let name = name.trim();
    name.eq_ignore_ascii_case("id")
        || name.eq_ignore_ascii_case("index")
        || ["Id", "ID"].iter().any(|end| name.ends_with(end))
        || name.len() > 3
            && ["_id", " id", "-id"]
                .iter()
                .any(|end| name.to_ascii_lowercase().ends_with(end))
}

/// Whether a name says that a column holds a date or time that may identify a row.
fn is_date_name(name: &str) -> bool {
    ["date", "datetime", "time", "timestamp"]
        .iter()
        .any(|n| name.trim().eq_ignore_ascii_case(n))
}

/// The identifier of a submission: its first column when that is also a column of the test table, else the first column whose name says so.
/// A submission of one column has none: its rows are matched by order.
pub fn identifier(sample: &Table, test: &Table) -> Option<String> {
    let columns = sample.columns();
    if columns.len() < 2 {
        return None;
    }
    let first = &columns[0];
    if test.position(first).is_some() {
        return Some(first.clone());
    }
    columns
        .iter()
        .find(|c| is_identifier_name(c))
        .or_else(|| columns.iter().find(|c| is_date_name(c)))
        .cloned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn table(header: &str) -> Table {
        Table::from_bytes(format!("{header}\n").into_bytes())
    }

    #[test]
    fn names_of_identifiers() {
        for name in [
            "id",
            "Id",
            "ID",
            "index",
            "user_id",
            "userId",
            "PassengerID",
            "loan id",
            "image_Id",
        ] {
            assert!(is_identifier_name(name), "{name}");
        }
        for name in ["paid", "valid", "covid", "target", "match", "idea", ""] {
            assert!(!is_identifier_name(name), "{name}");
        }
    }

    #[test]
    fn the_first_shared_column_identifies() {
        assert_eq!(
            identifier(&table("match,home,draw"), &table("match,team")),
            Some("match".into())
        );
        assert_eq!(identifier(&table("date,births"), &table("date")), Some("date".into()));
        assert_eq!(identifier(&table("paid,rate"), &table("x,y")), None);
        assert_eq!(identifier(&table("id"), &table("id,x")), None);
        assert_eq!(identifier(&table("rate,row_id"), &table("x,y")), Some("row_id".into()));
    }
}
