//! Statements of the query language. Each prints as text that parses to the same statement.

use std::fmt;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Query;

use crate::operators::Operator;

use super::evolve_options::EvolveOptions;
use super::expand_options::ExpandOptions;
use super::option::{OptionValue, quote};

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// Plain SQL, `SET`, `COPY`, `EXPLAIN` and the rest of what DataFusion reads.
    DataFusion(Box<DataFusionStatement>),
    /// `query EXPAND WITH operator …`
    Expand(Box<Expand>),
    /// `EXPLAIN query EXPAND WITH operator …`
    ExplainExpand(Box<ExplainExpand>),
    /// `CREATE POLICY name AS query`
    CreatePolicy(Box<CreatePolicy>),
    /// `DROP POLICY name`
    DropPolicy(DropPolicy),
    /// `SHOW POLICIES`
    ShowPolicies,
    /// `SHOW CREATE POLICY name`
    ShowCreatePolicy {
        /// Policy.
        name: String,
    },
    /// `EVOLVE TASK 'id' …`
    Evolve(Box<Evolve>),
    /// `SHOW RUNS`
    ShowRuns,
    /// `CANCEL RUN 'id'`
    CancelRun {
        /// Run.
        run_id: String,
    },
    /// `RESUME RUN 'id'`
    ResumeRun {
        /// Run.
        run_id: String,
    },
    /// `CHECKPOINT`
    Checkpoint,
    /// `OPTIMIZE [table]`
    Optimize {
        /// Parts of the table's name; `None` is every table.
        table: Option<Vec<String>>,
    },
    /// `CREATE TASK FROM 'path'`
    CreateTask {
        /// Folder of the package.
        path: String,
    },
    /// `CREATE MODEL name OPTIONS (…)`
    CreateModel(CreateModel),
    /// `DROP MODEL name`
    DropModel(DropModel),
    /// `SHOW MODELS`
    ShowModels,
}

/// A query whose rows become attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Expand {
    /// The query that chooses the input rows.
    pub query: Box<Query>,
    /// How each row is expanded.
    pub clause: ExpandClause,
}

/// What follows `EXPAND WITH`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandClause {
    /// Operator; a row's `operator` column takes its place when it is not NULL.
    pub operator: Operator,
    /// Options.
    pub options: ExpandOptions,
    /// Generator; `None` is the session's.
    pub model: Option<String>,
    /// Executor; `None` is the session's.
    pub sandbox: Option<String>,
    /// Return at once with the statement's id.
    pub is_async: bool,
}

/// The plan of an EXPAND; nothing runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainExpand {
    /// `VERBOSE`: show every plan.
    pub verbose: bool,
    /// What is explained.
    pub expand: Expand,
}

/// A selection policy.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePolicy {
    /// Take the place of a policy of the same name.
    pub or_replace: bool,
    /// Name, a table of the schema `policies`.
    pub name: String,
    /// What it does.
    pub comment: Option<String>,
    /// The query.
    pub query: Box<Query>,
    /// The query as the user wrote it, comments and layout included.
    pub sql: String,
}

/// Removal of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropPolicy {
    /// Do nothing when there is none.
    pub if_exists: bool,
    /// Name.
    pub name: String,
}

/// A search run.
#[derive(Debug, Clone, PartialEq)]
pub struct Evolve {
    /// Task to search on.
    pub task_id: String,
    /// Policy; `None` is the session's.
    pub policy: Option<String>,
    /// Generator; `None` is the session's.
    pub model: Option<String>,
    /// Executor; `None` is the session's.
    pub sandbox: Option<String>,
    /// Options.
    pub options: EvolveOptions,
    /// Return at once with the run's id.
    pub is_async: bool,
}

/// A named generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateModel {
    /// Take the place of a model of the same name.
    pub or_replace: bool,
    /// Name.
    pub name: String,
    /// Options in the order they were given; their meaning is the provider's.
    pub options: Vec<(String, OptionValue)>,
}

/// Removal of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropModel {
    /// Do nothing when there is none.
    pub if_exists: bool,
    /// Name.
    pub name: String,
}

impl CreateModel {
    /// The statement with every text hidden: one that was refused may hold a key in the wrong place.
    pub fn without_texts(&self) -> Self {
        let hidden = |value: &OptionValue| match value {
            OptionValue::Text(_) => OptionValue::Text("<hidden>".to_owned()),
            other => other.clone(),
        };
        Self {
            options: self
                .options
                .iter()
                .map(|(name, value)| (name.clone(), hidden(value)))
                .collect(),
            ..self.clone()
        }
    }
}

/// A name as it can be written: bare when that reads back the same, else as a quoted text.
struct Name<'a>(&'a str);

/// Words that open another clause where an optional name is printed; quoted, they are no keyword.
const CLAUSE_WORDS: [&str; 10] = [
    "as", "async", "comment", "from", "if", "in", "options", "policy", "using", "with",
];

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_letter = |character: char| character.is_ascii_lowercase() || character == '_';
        let is_bare = self.0.starts_with(is_letter)
            && self
                .0
                .chars()
                .all(|character| is_letter(character) || character.is_ascii_digit())
            && !CLAUSE_WORDS.contains(&self.0);
        if is_bare {
            f.write_str(self.0)
        } else {
            f.write_str(&quote(self.0))
        }
    }
}

/// A part of a table's name: bare or in double quotes.
struct Identifier<'a>(&'a str);

impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `._` does not tokenise, so a leading underscore needs quotes as well.
        let is_bare = self.0.starts_with(|character: char| character.is_ascii_lowercase())
            && self
                .0
                .chars()
                .all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'));
        if is_bare {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

/// `USING MODEL … IN SANDBOX …`
fn write_targets(f: &mut fmt::Formatter<'_>, model: Option<&str>, sandbox: Option<&str>) -> fmt::Result {
    if let Some(model) = model {
        write!(f, " USING MODEL {}", Name(model))?;
    }
    if let Some(sandbox) = sandbox {
        write!(f, " IN SANDBOX {}", Name(sandbox))?;
    }
    Ok(())
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataFusion(statement) => write!(f, "{statement}"),
            Self::Expand(expand) => write!(f, "{expand}"),
            Self::ExplainExpand(explain) => {
                write!(
                    f,
                    "EXPLAIN {}{}",
                    if explain.verbose { "VERBOSE " } else { "" },
                    explain.expand
                )
            }
            Self::CreatePolicy(create) => write!(f, "{create}"),
            Self::DropPolicy(drop) => {
                write!(
                    f,
                    "DROP POLICY {}{}",
                    if drop.if_exists { "IF EXISTS " } else { "" },
                    Name(&drop.name)
                )
            }
            Self::ShowPolicies => f.write_str("SHOW POLICIES"),
            Self::ShowCreatePolicy { name } => write!(f, "SHOW CREATE POLICY {}", Name(name)),
            Self::Evolve(evolve) => write!(f, "{evolve}"),
            Self::ShowRuns => f.write_str("SHOW RUNS"),
            Self::CancelRun { run_id } => write!(f, "CANCEL RUN {}", quote(run_id)),
            Self::ResumeRun { run_id } => write!(f, "RESUME RUN {}", quote(run_id)),
            Self::Checkpoint => f.write_str("CHECKPOINT"),
            Self::Optimize { table: None } => f.write_str("OPTIMIZE"),
            Self::Optimize { table: Some(parts) } => {
                let names: Vec<String> = parts.iter().map(|part| Identifier(part).to_string()).collect();
                write!(f, "OPTIMIZE {}", names.join("."))
            }
            Self::CreateTask { path } => write!(f, "CREATE TASK FROM {}", quote(path)),
            Self::CreateModel(create) => write!(f, "{create}"),
            Self::DropModel(drop) => {
                write!(
                    f,
                    "DROP MODEL {}{}",
                    if drop.if_exists { "IF EXISTS " } else { "" },
                    Name(&drop.name)
                )
            }
            Self::ShowModels => f.write_str("SHOW MODELS"),
        }
    }
}

impl fmt::Display for Expand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.query, self.clause)
    }
}

impl fmt::Display for ExpandClause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EXPAND WITH {}", self.operator)?;
        if !self.options.is_empty() {
            write!(f, " ({})", self.options)?;
        }
        write_targets(f, self.model.as_deref(), self.sandbox.as_deref())?;
        f.write_str(if self.is_async { " ASYNC" } else { "" })
    }
}

impl CreatePolicy {
    /// The statement that makes a policy, over several lines and ready to be pasted.
    pub fn text(name: &str, comment: Option<&str>, sql: &str) -> String {
        let comment = comment
            .map(|comment| format!(" COMMENT {}", quote(comment)))
            .unwrap_or_default();
        let sql = sql.trim().trim_end_matches(';').trim_end();
        // A semicolon behind a comment would be a part of it.
        let end = match sql.lines().last() {
            Some(last) if last.contains("--") => "\n;",
            _ => ";",
        };
        format!("CREATE POLICY {}{comment} AS\n{sql}{end}", Name(name))
    }
}

impl fmt::Display for CreatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CREATE {}POLICY {}",
            if self.or_replace { "OR REPLACE " } else { "" },
            Name(&self.name)
        )?;
        if let Some(comment) = &self.comment {
            write!(f, " COMMENT {}", quote(comment))?;
        }
        write!(f, " AS {}", self.sql)
    }
}

impl fmt::Display for Evolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EVOLVE TASK {}", quote(&self.task_id))?;
        if let Some(policy) = &self.policy {
            write!(f, " WITH POLICY {}", Name(policy))?;
        }
        write_targets(f, self.model.as_deref(), self.sandbox.as_deref())?;
        if !self.options.is_empty() {
            write!(f, " WITH ({})", self.options)?;
        }
        f.write_str(if self.is_async { " ASYNC" } else { "" })
    }
}

impl fmt::Display for CreateModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<String> = self
            .options
            .iter()
            .map(|(name, value)| format!("{} => {value}", Name(name)))
            .collect();
        write!(
            f,
            "CREATE {}MODEL {} OPTIONS ({})",
            if self.or_replace { "OR REPLACE " } else { "" },
            Name(&self.name),
            options.join(", ")
        )
    }
}
