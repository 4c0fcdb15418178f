//! The reference page of the tables, made from the comments of the catalog.

use std::fmt::Write as _;

use super::error::Result;
use super::open::Engine;
use crate::session::TableDescription;

/// What each schema is for, in the order of the page.
const SCHEMAS: [(&str, &str); 6] = [
    ("gym", "Tasks and what belongs to them."),
    (
        "evo",
        "Runs, attempts and programs, with the views that summarise them.",
    ),
    (
        "run",
        "The same limited to one run: that of `SET clade.run_id = …` or `clade sql --run`. Policies are written against these.",
    ),
    ("sandbox", "Programs that ran."),
    ("bench", "Grades on the hidden answers; no policy reads them."),
    ("system", "The store itself."),
];

impl Engine {
    /// The reference page of the tables, as Markdown.
    ///
    /// # Errors
    /// When a table cannot be opened.
    pub async fn tables_page(&self) -> Result<String> {
        let mut page = String::from(
            "# Tables\n\nGenerated from the comments of the catalog. `DESCRIBE table` shows the same.\n\n\
             Every stored table has a twin with the ending `_versions`: it shows every version of each row, with the\n\
             columns `_seq` and `_committed_at` of its commit. Each [policy](../policies.md) is a view of the schema\n\
             `policies`. Views show the comment of a column that they pass on; what they compute is said in their first lines.\n",
        );
        for (schema, purpose) in SCHEMAS {
            let _ = write!(page, "\n## {schema}\n\n{purpose}\n");
            let tables = self.tables().find(|(name, _)| *name == schema);
            for table in tables.into_iter().flat_map(|(_, tables)| tables) {
                if table.ends_with(clade_catalog::VERSIONS_SUFFIX) {
                    continue;
                }
                if let Some(found) = self.describe(schema, &table).await? {
                    write_table(&mut page, &format!("{schema}.{table}"), &found);
                }
            }
        }
        Ok(page)
    }
}

fn write_table(page: &mut String, name: &str, table: &TableDescription) {
    let doc = table.doc.as_deref().unwrap_or_default();
    let _ = write!(page, "\n### {name}\n\n{}\n\n", doc.trim());
    page.push_str("| column | type | |\n|---|---|---|\n");
    for column in &table.columns {
        let null = if column.is_nullable { "" } else { ", never NULL" };
        let comment = column.comment.as_deref().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {}{null} | {comment} |", column.name, column.data_type);
    }
}
