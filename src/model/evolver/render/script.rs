//! A Python script put together from sections, with its imports collected and sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const WIDTH: usize = 110;
const STANDARD: &[&str] = &["os", "pathlib"];

/// A script in the making.
#[derive(Debug, Default)]
pub(crate) struct Script {
    modules: BTreeSet<(&'static str, Option<&'static str>)>,
    names: BTreeMap<&'static str, BTreeSet<&'static str>>,
    body: String,
}

impl Script {
    /// Imports a module, perhaps under another name.
    pub(crate) fn import(&mut self, module: &'static str, name: Option<&'static str>) {
        self.modules.insert((module, name));
    }

    /// Imports a name of a module, and gives the name back.
    pub(crate) fn from(&mut self, module: &'static str, name: &'static str) -> &'static str {
        self.names.entry(module).or_default().insert(name);
        name
    }

    /// Starts a section.
    pub(crate) fn section(&mut self, title: &str) {
        let _ = write!(self.body, "\n\n# --- {title} ---\n");
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.body.push_str(line.as_ref());
        self.body.push('\n');
    }

    /// Adds a function, with blank lines around it.
    pub(crate) fn function(&mut self, text: impl AsRef<str>) {
        let _ = write!(self.body, "\n\n{}\n\n\n", text.as_ref().trim_end());
    }

    /// The whole script.
    pub(crate) fn finish(self, docstring: &str) -> String {
        let (mut standard, mut others) = (Vec::new(), Vec::new());
        for (module, name) in &self.modules {
            let line = match name {
                Some(name) => format!("import {module} as {name}"),
                None => format!("import {module}"),
            };
            if STANDARD.contains(module) {
                &mut standard
            } else {
                &mut others
            }
            .push(line);
        }
        for (module, names) in &self.names {
            let names: Vec<_> = names.iter().copied().collect();
            let mut line = format!("from {module} import {}", names.join(", "));
            if line.len() > WIDTH {
                line = format!("from {module} import (\n    {},\n)", names.join(",\n    "));
            }
            if STANDARD.contains(module) {
                &mut standard
            } else {
                &mut others
            }
            .push(line);
        }
        let text = format!(
            "\"\"\"{docstring}\"\"\"\n\n{}\n\n{}\n\n{}",
            standard.join("\n"),
            others.join("\n"),
            self.body.trim()
        );
        tidy(&text)
    }
}

/// At most two blank lines in a row, and none after an opening line of a block.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    let mut after_heading = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            blank += 1;
            continue;
        }
        let blanks = if after_heading { 0 } else { blank.min(2) };
        out.push_str(&"\n".repeat(blanks));
        blank = 0;
        after_heading = line.starts_with("# --- ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
