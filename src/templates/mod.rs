//! Prompt templates: minijinja texts under `configs/prompts/`, of which a folder of the user may replace any; and what is common to
//! the folders of files that prompts are made of.

mod filters;
mod source;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use minijinja::{Environment, ErrorKind, Value};

use filters::MOST_STEPS;
pub use filters::{size, tail};
pub use source::SourceError;
pub(crate) use source::{entries, read_text};

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../configs/prompts/", $name)))),+]
    };
}

/// The built-in templates.
const EMBEDDED: [(&str, &str); 29] = embedded![
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
    "memory/system.j2",
    "memory/summary.j2",
];

/// Folders of templates.
const FOLDERS: [&str; 3] = ["memory", "modality", "task_type"];
/// Largest template.
const MOST_BYTES: u64 = 256 << 10;
/// Longest text that a template may render; prompts are cut to far less.
const MOST_RENDERED: usize = 64 << 20;
/// Key of the configuration.
const SETTING: &str = "prompts.templates";
/// Where the user finds the names that there are.
const LISTED: &str = "the page on prompts lists what templates can read";

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
        let mut templates = Self {
            environment: filters::environment(),
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
        let mut text = Bounded::default();
        let rendered = self
            .environment
            .get_template(name)
            .and_then(|template| template.render_captured_to(values, &mut text).map(|_| ()));
        if text.is_full {
            return Err(SourceError::Template {
                origin: self.origin(name),
                reason: format!("it renders more than {MOST_RENDERED} bytes"),
            });
        }
        rendered.map_err(|error| self.wrong(&error, name, Some(values)))?;
        Ok(tidy(&String::from_utf8_lossy(&text.bytes)))
    }

    /// The file of the user in the place of a template, else its name.
    pub fn origin(&self, name: &str) -> String {
        self.replaced.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// All templates with their texts, by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
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
        if cause.kind() == ErrorKind::OutOfFuel {
            return SourceError::Template {
                origin: self.origin(name),
                reason: format!("{line}it does not come to an end within {MOST_STEPS} steps"),
            };
        }
        let detail = cause.detail().map_or_else(String::new, |detail| format!(": {detail}"));
        let place = self.texts.get(name).zip(cause.range());
        let place = place.map_or("", |(text, range)| self.expression(text, range));
        let unknown = match (cause.kind(), self.unknown(name, place, values)) {
            (_, Some(unknown)) => format!(": there is {unknown}; {LISTED}"),
            (ErrorKind::UndefinedError, None) if place.is_empty() => format!("; {LISTED}"),
            (ErrorKind::UndefinedError, None) => format!(": '{place}' has none; {LISTED}"),
            _ => String::new(),
        };
        SourceError::Template {
            origin: self.origin(name),
            reason: format!("{line}{}{detail}{unknown}", cause.kind()),
        }
    }

    /// The expression of a template that a fault is in. Where the range of the fault begins at a filter, a field or an index, what
    /// they are applied to stands before it.
    fn expression<'a>(&self, text: &'a str, range: Range<usize>) -> &'a str {
        let (Some(before), Some(named)) = (text.get(..range.start), text.get(range.clone())) else {
            return "";
        };
        if !named.starts_with(['[', '.', '(']) && !before.trim_end().ends_with(['|', '.']) {
            return named;
        }
        let tag = before.rfind(['{', '%']).map_or(0, |at| at + 1);
        let mut starts = before
            .char_indices()
            .map(|(at, _)| at)
            .rev()
            .take_while(|at| *at >= tag);
        let whole = starts.find_map(|start| {
            let begins_here = text[..start].ends_with([' ', '\n', '{', '%', '-', '+', '(', '[', ',', '=', '~', ':']);
            let candidate = text[start..range.end].trim_start();
            (begins_here && self.environment.compile_expression(candidate).is_ok()).then_some(candidate)
        });
        whole.unwrap_or(named)
    }

    /// Variables of an expression in a template that have no value, in words. Those that the template sets itself, such as macros and
    /// their arguments, are not among the values and still known.
    fn unknown(&self, name: &str, expression: &str, values: Option<&Value>) -> Option<String> {
        let (values, compiled) = values.zip(self.environment.compile_expression(expression).ok())?;
        let variables = compiled.undeclared_variables(true);
        let template = self.environment.get_template(name).ok()?;
        let roots = template.undeclared_variables(false);
        let mut unknown: Vec<String> = variables
            .iter()
            .filter(|variable| variable.contains('.') || roots.contains(*variable))
            .filter_map(|variable| unknown_part(variable, values))
            .map(|variable| format!("no '{variable}'"))
            .collect();
        unknown.sort();
        unknown.dedup();
        (!unknown.is_empty()).then(|| unknown.join(" or "))
    }
}

/// A text that is taken up to [`MOST_RENDERED`] bytes.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl std::io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + piece.len() > MOST_RENDERED {
            self.is_full = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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

/// Without spaces at line ends and without more than one blank line in a row, which templates leave where they had nothing to say.
/// Programs and logs keep their own: what stands between fences is left as it is.
fn tidy(text: &str) -> String {
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
