//! A file of JSON lines as a table: what a check or a split needs to know of answers that are kept in that format.

use std::path::Path;

use serde_json::{Map, Value};

use crate::gym::error::{GymError, io};
use crate::gym::table::Table;

/// Reads a file with one JSON object a line. The columns are the keys in the order they come up; what is neither text nor
/// number is written as JSON.
pub fn read_json_lines(path: &Path) -> Result<Table, GymError> {
    let text = std::fs::read_to_string(path).map_err(io("read", path))?;
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| GymError::table(path, format!("line {} is no JSON object: {error}", index + 1)))?;
        for key in row.keys() {
            if !columns.contains(key) {
                columns.push(key.clone());
            }
        }
        rows.push(row);
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: &dyn std::fmt::Display| GymError::table(path, format!("cannot be read as a table: {error}"));
    writer.write_record(&columns).map_err(|error| failed(&error))?;
    for row in &rows {
        let cells = columns.iter().map(|column| match row.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        });
        writer.write_record(cells).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    Ok(Table::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> Result<Table, GymError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.jsonl");
        std::fs::write(&path, text).unwrap();
        read_json_lines(&path)
    }

    #[test]
    fn keys_become_columns() {
        let table =
            read("{\"id\": \"007\", \"y\": 1.5}\n\n{\"id\": \"8\", \"y\": null, \"tags\": [\"a, b\"]}\n").unwrap();
        assert_eq!(table.columns(), ["id", "y", "tags"]);
        assert_eq!(table.row(0), ["007", "1.5", ""]);
        assert_eq!(table.row(1), ["8", "", "[\"a, b\"]"]);
    }

    #[test]
    fn a_line_that_is_no_object_is_named() {
        let error = read("{\"id\": 1}\n[1, 2]\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
