//! The tables of docs/security.md: a test notes what it saw of each attack, and the page must say the same.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The attack does what it is meant to do.
pub const WORKS: &str = "works";
/// The attack is refused or finds nothing.
pub const HELD: &str = "held";
/// Harmful, or without meaning, outside of a sandbox.
pub const NOT_TRIED: &str = "not tried";

/// Where something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Without,
    Native,
    Docker,
}

impl Column {
    pub fn of(backend: &str) -> Self {
        match backend {
            "process" => Self::Without,
            "native" => Self::Native,
            "docker" => Self::Docker,
            other => panic!("no column for {other}"),
        }
    }
}

/// Rows of one or several cases.
#[derive(Default)]
pub struct Rows(Vec<Row>);

struct Row {
    /// Such as `D21`.
    case: String,
    attack: String,
    /// This machine cannot show it without a sandbox.
    is_unseen: bool,
    /// `None` where nothing was seen; then the page keeps what it says.
    cells: [Option<String>; 3],
}

impl Rows {
    /// Notes what became of an attack. The jails with and without control groups share a column, so they must agree.
    #[track_caller]
    pub fn see(&mut self, column: Column, case: &str, attack: &str, word: &str) {
        assert!(
            column == Column::Without || word != WORKS,
            "{case}: {attack} works in {column:?}"
        );
        let cell = &mut self.row(case, attack).cells[column as usize];
        match cell.as_deref() {
            Some(seen) if seen == word => {}
            Some(WORKS) if column == Column::Without => {}
            Some(seen) if column != Column::Without || word != WORKS => {
                panic!("{case}: {attack} in {column:?}: first {seen:?}, then {word:?}")
            }
            _ => *cell = Some(word.to_owned()),
        }
    }

    /// Notes an attack that this machine cannot show.
    pub fn unseen(&mut self, case: &str, attack: &str) {
        self.row(case, attack).is_unseen = true;
    }

    /// Attacks without a sandbox that nobody tried: on purpose, or because only root can.
    pub fn fill_untried(&mut self) {
        for row in &mut self.0 {
            let is_missing = row.cells[Column::Without as usize].is_none() && !row.is_unseen;
            if is_missing && rustix::process::geteuid().is_root() {
                row.cells[0] = Some(NOT_TRIED.to_owned());
            }
        }
    }

    fn row(&mut self, case: &str, attack: &str) -> &mut Row {
        let found = self.0.iter().position(|row| row.case == case && row.attack == attack);
        let index = found.unwrap_or_else(|| {
            self.0.push(Row {
                case: case.to_owned(),
                attack: attack.to_owned(),
                is_unseen: false,
                cells: [None, None, None],
            });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    /// Compares with the page, or writes it where UPDATE_DOCS=1.
    #[track_caller]
    pub fn check(self) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = page();
        let old = std::fs::read_to_string(&path).unwrap();
        let new = self.written_into(&old);
        if new == old {
            return;
        }
        if std::env::var("UPDATE_DOCS").as_deref() == Ok("1") {
            std::fs::write(&path, new).unwrap();
            return;
        }
        let diff = similar::TextDiff::from_lines(&old, &new);
        panic!(
            "{} does not say what this test saw; run the test with UPDATE_DOCS=1 to write it:\n{}",
            path.display(),
            diff.unified_diff().context_radius(1)
        );
    }

    fn written_into(&self, page: &str) -> String {
        let mut page = page.to_owned();
        let groups: std::collections::BTreeSet<&str> = self.0.iter().map(|row| &row.case[..1]).collect();
        for group in groups {
            let (begin, end) = section(&page, group);
            let mut lines: Vec<String> = page[begin..end].lines().map(str::to_owned).collect();
            for row in self.0.iter().filter(|row| row.case.starts_with(group)) {
                let same = |line: &String| cells(line).starts_with(&[&row.case, &row.attack]);
                match lines.iter().position(same) {
                    Some(index) => lines[index] = row.to_line(Some(&lines[index])),
                    None => {
                        let after = lines.iter().rposition(|line| number(line) <= number_of(&row.case));
                        lines.insert(after.map_or(0, |index| index + 1), row.to_line(None));
                    }
                }
            }
            page.replace_range(begin..end, &(lines.join("\n") + "\n"));
        }
        page
    }
}

impl Row {
    fn to_line(&self, documented: Option<&String>) -> String {
        let kept = documented.map(|line| cells(line));
        let word = |index: usize| match (&self.cells[index], &kept) {
            (Some(seen), _) => seen.clone(),
            (None, Some(kept)) => kept[index + 2].to_owned(),
            (None, None) if index == Column::Without as usize => NOT_TRIED.to_owned(),
            (None, None) => "not run".to_owned(),
        };
        let (without, native, docker) = (word(0), word(1), word(2));
        format!("| {} | {} | {without} | {native} | {docker} |", self.case, self.attack)
    }
}

/// The page with the tables.
pub fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")
}

/// Every row of the page: case, attack, and what became of it.
pub fn documented() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(page()).unwrap();
    let mut rows = Vec::new();
    for group in ["A", "B", "C", "D", "E", "F", "G", "H", "I"] {
        let (begin, end) = section(&page, group);
        let lines = page[begin..end].lines().filter(|line| number(line) > 0);
        rows.extend(lines.map(|line| cells(line).into_iter().map(str::to_owned).collect()));
    }
    rows
}

/// Where the table of a group lies in the page.
fn section(page: &str, group: &str) -> (usize, usize) {
    let (first, last) = (
        format!("<!-- cases {group} -->\n"),
        format!("<!-- end of cases {group} -->"),
    );
    let begin = page.find(&first).unwrap_or_else(|| panic!("no {first}")) + first.len();
    let end = page.find(&last).unwrap_or_else(|| panic!("no {last}"));
    (begin, end)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The number of a row's case; 0 for the head of the table.
fn number(line: &str) -> u32 {
    number_of(cells(line)[0])
}

fn number_of(case: &str) -> u32 {
    case.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
