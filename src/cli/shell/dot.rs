//! Commands of the shell itself; they begin with a dot.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::printer::Format;
use crate::cli::sql_text::literal;

/// What `.help` prints.
pub(super) const HELP: &str = "\
Statements end with ; and may span lines. Ctrl-C clears the line or stops the query, Ctrl-D leaves.

.help                  this text
.tables [PATTERN]      tables and views, all or those whose name holds PATTERN
.schema NAME           columns of a table with their comments
.functions [PATTERN]   functions with what they do
.policies              selection policies
.runs                  search runs
.format [FORMAT]       show or choose the format of results: table, json or csv
.timing on|off         note row counts and times
.read FILE             run the statements of a file
.quit                  leave";

/// Names of all commands, for completion.
pub(super) const NAMES: [&str; 10] = [
    ".help",
    ".tables",
    ".schema",
    ".functions",
    ".policies",
    ".runs",
    ".format",
    ".timing",
    ".read",
    ".quit",
];

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DotCommand {
    Help,
    /// A statement behind a short name.
    Query(String),
    Runs,
    Format(Option<Format>),
    Timing(bool),
    Read(PathBuf),
    Quit,
}

impl DotCommand {
    /// Reads a line that begins with a dot.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (name, argument) = match line.split_once(char::is_whitespace) {
            Some((name, argument)) => (name, Some(argument.trim())),
            None => (line, None),
        };
        let nothing = |command: Self| match argument {
            None => Ok(command),
            Some(_) => Err(format!("{name} takes no argument")),
        };
        match name {
            ".help" | ".h" => nothing(Self::Help),
            ".quit" | ".exit" | ".q" => nothing(Self::Quit),
            ".tables" => Ok(Self::Query(tables(argument))),
            ".schema" => match argument {
                Some(table) => Ok(Self::Query(schema(table))),
                None => Err(".schema takes the name of a table, such as evo.nodes".to_owned()),
            },
            ".functions" => Ok(Self::Query(functions(argument))),
            ".policies" => nothing(Self::Query("SHOW POLICIES".to_owned())),
            ".runs" => nothing(Self::Runs),
            ".format" => match argument {
                None => Ok(Self::Format(None)),
                Some(word) => Format::from_str(word, true)
                    .map(|format| Self::Format(Some(format)))
                    .map_err(|_| format!("there is no format '{word}': table, json or csv")),
            },
            ".timing" => match argument {
                Some("on") => Ok(Self::Timing(true)),
                Some("off") => Ok(Self::Timing(false)),
                _ => Err(".timing takes on or off".to_owned()),
            },
            ".read" => match argument {
                Some(path) => Ok(Self::Read(PathBuf::from(path))),
                None => Err(".read takes the name of a file".to_owned()),
            },
            _ => Err(format!("there is no command '{name}'; .help lists them")),
        }
    }
}

fn tables(pattern: Option<&str>) -> String {
    let condition = pattern.map(|pattern| {
        format!(
            " AND contains(lower(concat(table_schema, '.', table_name)), {})",
            literal(&pattern.to_lowercase())
        )
    });
    format!(
        "SELECT concat(table_schema, '.', table_name) AS \"table\", table_type AS kind FROM information_schema.tables \
         WHERE table_schema <> 'information_schema'{} ORDER BY 1",
        condition.unwrap_or_default()
    )
}

fn schema(table: &str) -> String {
    format!("DESCRIBE {table}")
}

fn functions(pattern: Option<&str>) -> String {
    let condition = pattern.map(|pattern| format!(" WHERE contains(name, {})", literal(&pattern.to_lowercase())));
    format!(
        "SELECT name, kind, syntax, description FROM system.functions{} ORDER BY name",
        condition.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_arguments() {
        assert_eq!(DotCommand::parse(".help"), Ok(DotCommand::Help));
        assert_eq!(DotCommand::parse(" .quit; "), Ok(DotCommand::Quit));
        assert_eq!(DotCommand::parse(".format"), Ok(DotCommand::Format(None)));
        assert_eq!(
            DotCommand::parse(".format CSV"),
            Ok(DotCommand::Format(Some(Format::Csv)))
        );
        assert_eq!(DotCommand::parse(".timing off"), Ok(DotCommand::Timing(false)));
        assert_eq!(
            DotCommand::parse(".read a b.sql"),
            Ok(DotCommand::Read("a b.sql".into()))
        );
        assert_eq!(
            DotCommand::parse(".schema evo.nodes"),
            Ok(DotCommand::Query("DESCRIBE evo.nodes".to_owned()))
        );
        for (line, error) in [
            (".nope", "there is no command '.nope'; .help lists them"),
            (".schema", ".schema takes the name of a table, such as evo.nodes"),
            (".format xml", "there is no format 'xml': table, json or csv"),
            (".quit now", ".quit takes no argument"),
            (".timing", ".timing takes on or off"),
        ] {
            assert_eq!(DotCommand::parse(line), Err(error.to_owned()));
        }
    }

    #[test]
    fn a_pattern_is_a_literal() {
        let Ok(DotCommand::Query(sql)) = DotCommand::parse(".tables it's") else {
            unreachable!()
        };
        assert!(sql.contains("'it''s'"), "{sql}");
    }
}
