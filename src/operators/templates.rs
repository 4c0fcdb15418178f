//! Prompt templates: minijinja texts under `configs/prompts/`, of which a folder of the user may replace any.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};
use sha2::{Digest, Sha256};

use super::Operator;
use super::context::{board_sql, context_sql, facts_sql};
use super::cut::tail;
use super::facts::size;
use super::source::{SourceError, entries, read_text};

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../configs/prompts/", $name)))),+]
    };
}

/// The built-in templates.
const EMBEDDED: [(&str, &str); 27] = embedded![
    "system.j2",
    "task.j2",
    "data.j2",
    "validation.j2",
    "guidance.j2",
    "skills.j2",
    "board.j2",
    "budget.j2",
    "node.j2",
    "draft.j2",
    "improve.j2",
    "debug.j2",
    "crossover.j2",
    "modality/tabular.j2",
    "modality/text.j2",
    "modality/image.j2",
    "modality/audio.j2",
    "modality/time_series.j2",
    "modality/mixed.j2",
    "modality/scientific.j2",
    "task_type/binary.j2",
    "task_type/multiclass.j2",
    "task_type/regression.j2",
    "task_type/multi_target.j2",
    "task_type/ranking.j2",
    "task_type/forecasting.j2",
    "task_type/other.j2",
];

/// Folders of templates.
const FOLDERS: [&str; 2] = ["modality", "task_type"];
/// Largest template.
const MOST_BYTES: u64 = 256 << 10;
/// Key of the configuration.
const SETTING: &str = "prompts.templates";

/// The templates of a process.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    /// Texts by name, for the version.
    texts: BTreeMap<String, String>,
    /// Files of the user by the name of what they replace.
    replaced: BTreeMap<String, String>,
}

impl Templates {
    /// The built-in templates, and in the place of each the file of the same name in a folder of the user.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, a file replaces nothing, or a template does not compile.
    pub fn new(overrides: Option<&Path>) -> Result<Self, SourceError> {
        let mut texts: BTreeMap<String, String> = EMBEDDED
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let mut replaced = BTreeMap::new();
        if let Some(dir) = overrides {
            for (name, path) in files(dir)? {
                if !texts.contains_key(&name) {
                    let known: Vec<&str> = texts.keys().map(String::as_str).collect();
                    return Err(SourceError::File {
                        path,
                        reason: format!(
                            "there is no prompt template '{name}' to replace; there are {}",
                            known.join(", ")
                        ),
                    });
                }
                let text = read_text(&path, MOST_BYTES)?;
                if text.trim().is_empty() {
                    return Err(SourceError::File {
                        path,
                        reason: "it is empty; without it the built-in template is used, and a comment such as {# nothing #} says nothing"
                            .to_owned(),
                    });
                }
                texts.insert(name.clone(), text);
                replaced.insert(name, path.display().to_string());
            }
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_trim_blocks(true);
        environment.set_keep_trailing_newline(true);
        environment.add_filter("truncate", |text: String, length: usize| {
            clade_udfs::text::truncate_middle(&text, length, length / 2).into_owned()
        });
        environment.add_filter("trim_end", |text: String| text.trim_end().to_owned());
        environment.add_filter("tail", |text: String, length: usize| tail(&text, length));
        environment.add_filter("figure", figure);
        environment.add_filter("size", |bytes: i64| size(u64::try_from(bytes).unwrap_or(0)));
        let mut templates = Self {
            environment,
            texts,
            replaced,
        };
        for (name, text) in templates.texts.clone() {
            let added = templates.environment.add_template_owned(name.clone(), text);
            added.map_err(|error| templates.wrong(&error, &name, None))?;
        }
        Ok(templates)
    }

    /// Whether a file of the user is in the place of a built-in template.
    pub fn are_replaced(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Renders a template.
    ///
    /// # Errors
    /// When it reads what there is not, or otherwise fails.
    pub fn render(&self, name: &str, values: &Value) -> Result<String, SourceError> {
        let rendered = self
            .environment
            .get_template(name)
            .and_then(|template| template.render(values));
        rendered
            .map(tidy)
            .map_err(|error| self.wrong(&error, name, Some(values)))
    }

    /// The file of the user in the place of a template, else its name.
    pub fn origin(&self, name: &str) -> String {
        self.replaced.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Version of an operator: changes with its queries and its templates.
    pub fn version(&self, operator: Operator) -> String {
        let mut hasher = Sha256::new();
        for sql in [context_sql(operator), board_sql(), facts_sql()] {
            hasher.update(sql);
        }
        for (name, text) in &self.texts {
            let is_of_another = |other: &Operator| *other != operator && *name == format!("{other}.j2");
            if !Operator::ALL.iter().any(is_of_another) {
                hasher.update(text);
            }
        }
        hasher.finalize()[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// An error of a template with its file and line, and the names in that place that `values` do not have.
    fn wrong(&self, error: &minijinja::Error, name: &str, values: Option<&Value>) -> SourceError {
        // The innermost cause knows the file and the line.
        let mut cause = error;
        while let Some(inner) = std::error::Error::source(cause).and_then(|source| source.downcast_ref()) {
            cause = inner;
        }
        let name = cause.name().unwrap_or(name);
        let line = cause.line().map_or_else(String::new, |line| format!("line {line}: "));
        let detail = cause.detail().map_or_else(String::new, |detail| format!(": {detail}"));
        let unknown = match (cause.kind(), values) {
            (ErrorKind::UndefinedError, Some(values)) => {
                let place = self.texts.get(name).zip(cause.range());
                let place = place.and_then(|(text, range)| text.get(range)).unwrap_or_default();
                format!(
                    "{}; the page on prompts lists what templates can read",
                    self.unknown(place, values)
                )
            }
            _ => String::new(),
        };
        SourceError::Template {
            origin: self.origin(name),
            reason: format!("{line}{}{detail}{unknown}", cause.kind()),
        }
    }

    /// What has no value in an expression of a template, in words.
    fn unknown(&self, expression: &str, values: &Value) -> String {
        let variables = self
            .environment
            .compile_expression(expression)
            .map(|compiled| compiled.undeclared_variables(true))
            .unwrap_or_default();
        let mut unknown: Vec<String> = variables
            .iter()
            .filter_map(|variable| unknown_part(variable, values))
            .map(|variable| format!("no '{variable}'"))
            .collect();
        unknown.sort();
        unknown.dedup();
        match unknown.as_slice() {
            [] if expression.is_empty() => String::new(),
            [] => format!(": '{expression}' has none"),
            unknown => format!(": there is {}", unknown.join(" or ")),
        }
    }
}

/// The part of a variable such as `task.metrc` up to the name that is not known. A variable that the template has set itself is not
/// among the values: of it nothing is known.
fn unknown_part<'a>(variable: &'a str, values: &Value) -> Option<&'a str> {
    let (mut value, mut end) = (values.clone(), 0);
    for name in variable.split('.') {
        let is_root = end == 0;
        end += name.len() + usize::from(!is_root);
        match value.get_attr(name) {
            Ok(field) if !field.is_undefined() => value = field,
            _ if is_root => return Some(variable),
            _ => return variable.get(..end),
        }
    }
    None
}

/// Files of a folder of templates by their names below it.
fn files(dir: &Path) -> Result<Vec<(String, std::path::PathBuf)>, SourceError> {
    let mut found = Vec::new();
    for (name, path) in entries(dir, "templates", SETTING)? {
        if path.is_dir() && FOLDERS.contains(&name.as_str()) {
            let below = entries(&path, "templates", SETTING)?;
            found.extend(below.into_iter().map(|(file, path)| (format!("{name}/{file}"), path)));
        } else {
            found.push((name, path));
        }
    }
    Ok(found)
}

/// A number at six significant digits.
fn figure(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// Without spaces at line ends and without more than one blank line in a row, which templates leave where they had nothing to say.
/// Programs and logs keep their own: what stands between fences is left as it is.
fn tidy(text: String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fenced = false;
    let mut blank = true;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let line = if fenced { line } else { line.trim_end() };
        let is_blank = line.is_empty() && !fenced;
        if !(is_blank && blank) {
            out.push_str(line);
            out.push('\n');
        }
        blank = is_blank;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
