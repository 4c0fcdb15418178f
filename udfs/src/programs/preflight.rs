//! What a program's text gives away before it runs: modules it cannot do without, and attempts to install packages.

use rustpython_ruff_python_ast::visitor::{self, Visitor};
use rustpython_ruff_python_ast::{Expr, ExprCall, InterpolatedStringElement, Stmt};

use super::source::look_at;

/// Functions that run a command.
const RUNNERS: [&str; 14] = [
    "run",
    "call",
    "check_call",
    "check_output",
    "Popen",
    "getoutput",
    "getstatusoutput",
    "system",
    "popen",
    "execv",
    "execvp",
    "execlp",
    "create_subprocess_exec",
    "create_subprocess_shell",
];

/// Programs that install packages.
const INSTALLERS: [&str; 11] = [
    "pip",
    "pip3",
    "uv",
    "conda",
    "mamba",
    "micromamba",
    "easy_install",
    "apt",
    "apt-get",
    "yum",
    "apk",
];

/// Verbs of theirs that do it.
const VERBS: [&str; 3] = ["install", "add", "download"];

/// Something found in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Line, from 1.
    pub line: usize,
    /// The module, or the command.
    pub what: String,
}

/// Top-level modules that a program imports whatever happens: by statements that stand alone at its top, not in a function, a
/// branch or a `try`. A program that changes where modules are looked for has none that can be told.
pub fn needed_modules(code: &str) -> Vec<Found> {
    if code.contains("sys.path") || code.contains("sys.modules") || code.contains("addsitedir") {
        return Vec::new();
    }
    let found = look_at(code, |parsed| {
        let mut found: Vec<(usize, String)> = Vec::new();
        for statement in parsed.suite() {
            match statement {
                Stmt::Import(import) => {
                    let at = import.range.start().to_usize();
                    let names = import.names.iter().map(|alias| (at, top_level(alias.name.as_str())));
                    found.extend(names);
                }
                Stmt::ImportFrom(import) if import.level == 0 => {
                    let at = import.range.start().to_usize();
                    found.extend(import.module.as_ref().map(|module| (at, top_level(module.as_str()))));
                }
                _ => {}
            }
        }
        found
    });
    let mut modules: Vec<Found> = Vec::new();
    for (at, what) in found.unwrap_or_default() {
        if !modules.iter().any(|known| known.what == what) {
            modules.push(Found {
                line: line_of(code, at),
                what,
            });
        }
    }
    modules
}

/// The first command of a program that installs packages: pip, conda, apt and the like, started by the functions that start
/// commands, or called as a module.
pub fn install_command(code: &str) -> Option<Found> {
    let (at, what) = look_at(code, |parsed| {
        let mut installs = Installs::default();
        installs.visit_body(parsed.suite());
        installs.first
    })??;
    Some(Found {
        line: line_of(code, at),
        what,
    })
}

#[derive(Debug, Default)]
struct Installs {
    first: Option<(usize, String)>,
}

impl<'a> Visitor<'a> for Installs {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.first.is_none()
            && let Expr::Call(call) = expression
            && let Some(command) = installs(call)
        {
            self.first = Some((call.range.start().to_usize(), command));
        }
        visitor::walk_expr(self, expression);
    }
}

/// The command of a call that installs something.
fn installs(call: &ExprCall) -> Option<String> {
    let function = dotted(&call.func);
    let (module, name) = function.rsplit_once('.').unwrap_or(("", &function));
    let is_pip = module == "pip" || module.starts_with("pip.");
    if !is_pip && !RUNNERS.contains(&name) {
        return None;
    }
    let mut words = Vec::new();
    for argument in &call.arguments.args {
        texts(argument, &mut words);
    }
    for keyword in &call.arguments.keywords {
        texts(&keyword.value, &mut words);
    }
    let installer = if is_pip {
        Some(0)
    } else {
        words.iter().position(|word| is_installer(word))
    };
    let verb = words.iter().skip(installer?).any(|word| VERBS.contains(&word.as_str()));
    verb.then(|| {
        if is_pip {
            format!("{function} {}", words.join(" "))
        } else {
            words.join(" ")
        }
    })
}

fn is_installer(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    INSTALLERS.contains(&name)
}

/// A name with its dots; empty for anything else.
fn dotted(expression: &Expr) -> String {
    match expression {
        Expr::Name(name) => name.id.as_str().to_owned(),
        Expr::Attribute(attribute) => match dotted(&attribute.value).as_str() {
            "" => attribute.attr.as_str().to_owned(),
            before => format!("{before}.{}", attribute.attr.as_str()),
        },
        _ => String::new(),
    }
}

/// The words of the texts in an expression; what is not written out is left out.
fn texts(expression: &Expr, words: &mut Vec<String>) {
    let mut add = |text: &str| words.extend(text.split_whitespace().map(str::to_owned));
    match expression {
        Expr::StringLiteral(literal) => add(literal.value.to_str()),
        Expr::FString(text) => {
            for element in text.value.elements() {
                if let InterpolatedStringElement::Literal(literal) = element {
                    add(&literal.value);
                }
            }
        }
        Expr::List(list) => list.elts.iter().for_each(|element| texts(element, words)),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| texts(element, words)),
        Expr::Starred(starred) => texts(&starred.value, words),
        Expr::BinOp(operation) => {
            texts(&operation.left, words);
            texts(&operation.right, words);
        }
        Expr::Call(call) => {
            if let Expr::Attribute(attribute) = &*call.func {
                texts(&attribute.value, words);
            }
        }
        _ => {}
    }
}

fn top_level(module: &str) -> String {
    module.split('.').next().unwrap_or(module).to_owned()
}

fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn modules(code: &str) -> Vec<(usize, String)> {
        let found = needed_modules(code).into_iter();
        found.map(|found| (found.line, found.what)).collect()
    }

    #[test]
    fn only_what_is_imported_whatever_happens_is_needed() {
        let code = "import os, numpy.linalg as la\nfrom sklearn.svm import SVC\nfrom . import near\ntry:\n    import xgboost\nexcept \
                    ImportError:\n    xgboost = None\nif os.name == 'nt':\n    import winreg\ndef f():\n    import torch\nimport os\n";
        let named = |line, name: &str| (line, name.to_owned());
        assert_eq!(modules(code), [named(1, "os"), named(1, "numpy"), named(2, "sklearn")]);
        assert_eq!(modules(&format!("import sys\nsys.path.append('x')\n{code}")), []);
    }

    #[test]
    fn installs_are_found_however_they_are_started() {
        for (code, line) in [
            ("import os\nos.system('pip install xgboost')\n", 2),
            (
                "import subprocess\nsubprocess.run(['pip', 'install', 'x'], check=True)\n",
                2,
            ),
            (
                "import subprocess as sp, sys\n\nsp.check_call([sys.executable, '-m', 'pip', 'install', '-q', name])\n",
                3,
            ),
            (
                "from subprocess import run\nif x:\n    run(f'pip3 install {name}', shell=True)\n",
                3,
            ),
            ("import os\nos.popen('conda install -y ' + name)\n", 2),
            (
                "import subprocess\nsubprocess.Popen('apt-get update && apt-get install -y git'.split())\n",
                2,
            ),
            (
                "import subprocess\nsubprocess.run(args=('/usr/bin/uv', 'pip', 'install', 'x'))\n",
                2,
            ),
            ("import pip\npip.main(['install', 'x'])\n", 2),
            (
                "import pip._internal\ndef f():\n    pip._internal.main(['install', 'x'])\n",
                3,
            ),
        ] {
            assert_eq!(install_command(code).map(|found| found.line), Some(line), "{code}");
        }
    }

    #[test]
    fn other_commands_and_words_are_none() {
        for code in [
            "print('pip install xgboost')\n",
            "# os.system('pip install x')\n",
            "import subprocess\nsubprocess.run(['ls', 'pip'])\n",
            "import subprocess\nsubprocess.run(['pip', 'list'])\n",
            "model.run('install')\n",
            "s = '''\nos.system('pip install x')\n'''\n",
        ] {
            assert_eq!(install_command(code), None, "{code}");
        }
    }
}
