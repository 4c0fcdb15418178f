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
            "\"\"\"{}\"\"\"\n\n{}\n\n{}\n\n{}",
            fill(docstring),
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
        wrap(line.trim_end(), &mut out);
    }
    out
}

/// Words of a docstring on lines that are not too long.
fn fill(text: &str) -> String {
    let mut out = String::new();
    let mut column = 3;
    for word in text.split(' ') {
        if column > 3 && column + word.len() >= WIDTH {
            out.push('\n');
            column = 0;
        } else if !out.is_empty() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    if out.contains('\n') { out + "\n" } else { out }
}

/// A line as it is where it fits, else broken within its last long bracket.
fn wrap(line: &str, out: &mut String) {
    let code = line.trim_start();
    let indent = line.len() - code.len();
    let breakable = line.len() > WIDTH && !code.starts_with('#') && !code.starts_with('"');
    let Some((open, close)) = breakable.then(|| bracket(line)).flatten() else {
        out.push_str(line);
        out.push('\n');
        return;
    };
    let inner = " ".repeat(indent + 4);
    out.push_str(&line[..=open]);
    out.push('\n');
    let (parts, comprehension) = arguments(&line[open + 1..close]);
    let is_grouping = parts.len() == 1 && line[..open].ends_with([' ', '(', '[']) && line[open..].starts_with('(');
    let comma = if comprehension || is_grouping { "" } else { "," };
    for part in parts {
        wrap(&format!("{inner}{part}{comma}"), out);
    }
    wrap(&format!("{}{}", " ".repeat(indent), &line[close..]), out);
}

/// The outermost bracket that ends the line, or the longest outermost one.
fn bracket(line: &str) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut open = 0;
    let mut best: Option<(usize, usize)> = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => {
                if depth == 0 {
                    open = at;
                }
                depth += 1;
            }
            (None, ')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && best.is_none_or(|(start, end)| end - start <= at - open) {
                    best = Some((open, at));
                }
            }
            _ => {}
        }
    }
    best.filter(|(open, close)| close - open > 10)
}

/// The arguments within a bracket; a comprehension stays in one piece.
fn arguments(body: &str) -> (Vec<&str>, bool) {
    let mut depth = 0_i32;
    let mut quote = None;
    let mut start = 0;
    let mut parts = Vec::new();
    let mut comprehension = false;
    for (at, c) in body.char_indices() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(body[start..at].trim());
                start = at + 1;
            }
            (None, ' ') if depth == 0 && body[at..].starts_with(" for ") => comprehension = true,
            _ => {}
        }
    }
    if comprehension {
        return (vec![body.trim()], true);
    }
    let last = body[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    (parts, false)
}
