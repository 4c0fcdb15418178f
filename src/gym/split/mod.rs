//! The validation split: the training data, divided and packaged like the real task, so that a search is scored on it
//! exactly as the test is scored, and hidden test answers are touched only at grading.

mod choose;
mod custom;
mod files;
mod held_back;
#[cfg(test)]
mod tests;
mod time;
mod verify;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use choose::is_categorical;
pub use custom::{CUSTOM_SPLIT, CustomSplit};
pub use verify::{perfect_submissions, verify_perfect};

use choose::{Choice, Rows, choose};
use files::{RowFiles, link_file, plan_files};
use held_back::HeldBack;

use crate::gym::columns::Columns;
use crate::gym::error::GymError;
use crate::gym::manifest::{Unit, ValidationSettings};
use crate::gym::table::{Cell, Table};

/// Training rows that a package needs before a part of them can be held out.
const MIN_ROWS: usize = 10;

/// What a split is derived from.
#[derive(Debug)]
pub struct SplitInput<'a> {
    /// Folder `data/public` of the package.
    pub public: &'a Path,
    /// All files in it, relative, sorted.
    pub public_files: &'a [String],
    /// `train.csv`.
    pub train: &'a Table,
    /// `test.csv`.
    pub test: &'a Table,
    /// `sample_submission.csv`.
    pub sample: &'a Table,
    /// `test_answer.csv`.
    pub answer: &'a Table,
    /// Roles of the columns.
    pub columns: &'a Columns,
    /// Settings of the package.
    pub settings: &'a ValidationSettings,
}

/// A split that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// How the rows were chosen, for people.
    pub how: String,
    /// Rows of the validation's `train.csv`.
    pub train_rows: usize,
    /// Rows of the validation's `test.csv`.
    pub test_rows: usize,
    /// The rows were held out by time.
    pub by_time: bool,
    /// Remarks for people.
    pub notes: Vec<String>,
}

/// How the answers follow from training columns.
#[derive(Debug)]
enum Answers {
    /// Each answer column is a training column.
    Columns,
    /// Answer columns are the classes of one training column, with these texts for the right and a wrong class.
    OneHot { column: usize, hot: String, cold: String },
    /// Answers list the items that an id meets later.
    HeldBack { target: String, rule: HeldBack },
}

/// Makes the validation split under `out` (`public/` and `private/`); the inner error says why it cannot be made from these files.
pub fn derive(input: &SplitInput<'_>, out: &Path) -> Result<Result<Split, String>, GymError> {
    if input.train.len() < MIN_ROWS {
        return Ok(Err(format!("train.csv has only {} rows", input.train.len())));
    }
    let answers = match find_answers(input) {
        Ok(answers) => answers,
        Err(reason) => return Ok(Err(reason)),
    };
    match &answers {
        Answers::HeldBack { target, rule } => hold_back(input, target, rule, out),
        Answers::Columns | Answers::OneHot { .. } => divide(input, &answers, out),
    }
}

fn find_answers(input: &SplitInput<'_>) -> Result<Answers, String> {
    let (train, columns) = (input.train, input.columns);
    let missing: Vec<&String> = columns.targets.iter().filter(|t| train.position(t).is_none()).collect();
    if columns.targets.is_empty() {
        return Err("test_answer.csv has no target column".to_owned());
    }
    let interactions = input.settings.unit == Some(Unit::Interactions);
    if missing.is_empty() && !interactions {
        return Ok(Answers::Columns);
    }
    if let Some(one_hot) = find_one_hot(input).filter(|_| !interactions) {
        return Ok(one_hot);
    }
    if let (Some(id), [target]) = (&columns.id, columns.targets.as_slice())
        && let Some(rule) = HeldBack::find(id, target, train, input.test, input.answer)
    {
        return Ok(Answers::HeldBack {
            target: target.clone(),
            rule,
        });
    }
    if interactions {
        return Err(
            "validation.unit is 'interactions', but the answers do not list items of ids that train.csv has".to_owned(),
        );
    }
    let names: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    Err(format!(
        "the answer columns {} are not in train.csv and do not follow from it",
        names.join(", ")
    ))
}

/// Recognises answers with one column a class, of which exactly one is set in each row.
fn find_one_hot(input: &SplitInput<'_>) -> Option<Answers> {
    let targets: HashSet<&str> = input.columns.targets.iter().map(String::as_str).collect();
    let column = (0..input.train.columns().len()).find(|c| {
        let name = &input.train.columns()[*c];
        let values = input.train.column(*c);
        input.test.position(name).is_none()
            && input.columns.id.as_ref() != Some(name)
            && targets.len() > 1
            && values.iter().all(|v| targets.contains(v.as_ref()))
    })?;
    let cells: Vec<Vec<Cow<'_, str>>> = input
        .columns
        .targets
        .iter()
        .filter_map(|t| Some(input.answer.column(input.answer.position(t)?)))
        .collect();
    let texts: HashSet<&str> = cells.iter().flatten().map(|v| v.as_ref()).collect();
    let is = |text: &&&str, wanted: f64| text.trim().parse::<f64>() == Ok(wanted);
    let hot = texts.iter().find(|t| is(t, 1.0))?;
    let cold = texts.iter().find(|t| is(t, 0.0))?;
    let single = (0..input.answer.len()).all(|row| cells.iter().filter(|c| c[row].as_ref() == *hot).count() == 1);
    (texts.len() == 2 && single).then(|| Answers::OneHot {
        column,
        hot: (*hot).to_owned(),
        cold: (*cold).to_owned(),
    })
}

/// Divides the rows of `train.csv`.
fn divide(input: &SplitInput<'_>, answers: &Answers, out: &Path) -> Result<Result<Split, String>, GymError> {
    let (train, test, columns) = (input.train, input.test, input.columns);
    let absent: Vec<&str> = test
        .columns()
        .iter()
        .filter(|c| train.position(c).is_none() && columns.id.as_ref() != Some(c))
        .map(String::as_str)
        .collect();
    if !absent.is_empty() {
        return Ok(Err(format!(
            "test.csv has columns that train.csv lacks: {}",
            absent.join(", ")
        )));
    }
    let targets: Vec<usize> = match answers {
        Answers::OneHot { column, .. } => vec![*column],
        _ => columns.targets.iter().filter_map(|t| train.position(t)).collect(),
    };
    let rows = Rows {
        train,
        test,
        columns,
        targets: &targets,
        settings: input.settings,
    };
    let Choice { held, how, by_time } = match choose(&rows) {
        Ok(choice) => choice,
        Err(reason) => return Ok(Err(reason)),
    };
    let id_column = columns.id.as_ref().and_then(|id| train.position(id));
    let secret: Vec<String> = targets.iter().map(|c| train.columns()[*c].clone()).collect();
    let row_files = RowFiles {
        train,
        test,
        held: &held,
        id: columns.id.as_deref(),
        secret: &secret,
        pair: None,
    };
    let public = out.join("public");
    let side_files = side_files(input);
    let plan = match plan_files(&row_files, input.public, &side_files, &public)? {
        Ok(plan) => plan,
        Err(reason) => return Ok(Err(reason)),
    };
    for (from, to) in &plan.links {
        link_file(&input.public.join(from), &public.join(to))?;
    }
    let mut writer = train.writer();
    writer.header();
    let kept = held.iter().filter(|h| !**h).count();
    (0..train.len())
        .filter(|row| !held[*row])
        .for_each(|row| writer.copy(row));
    writer.save(&public.join("train.csv"))?;
    // Where the real file has an identifier once, so has this one, also when training rows are repeated.
    let held_rows: Vec<usize> = (0..train.len()).filter(|row| held[*row]).collect();
    let first_rows: Vec<usize> = match id_column {
        Some(id) => {
            let mut seen = HashSet::new();
            held_rows
                .iter()
                .copied()
                .filter(|row| seen.insert(train.value(*row, id)))
                .collect()
        }
        None => held_rows.clone(),
    };
    let rows_like = |table: &Table| {
        let unique = columns.id.as_ref().and_then(|id| table.position(id)).is_none_or(|c| {
            let mut seen = HashSet::new();
            table.column(c).into_iter().all(|v| seen.insert(v))
        });
        if unique { &first_rows } else { &held_rows }
    };
    let source = |name: &String| train.position(name);
    let id_cell = |row: usize| match id_column {
        Some(id) => Cell::Field(train, row, id),
        None => Cell::Text(row.to_string().into()),
    };
    let mut writer = test.writer();
    writer.header();
    for row in rows_like(test) {
        writer.row(
            test.columns()
                .iter()
                .enumerate()
                .map(|(n, name)| match plan.renamed.get(&(*row, n)) {
                    Some(text) => Cell::Text(text.as_str().into()),
                    None => source(name).map_or_else(|| id_cell(*row), |c| Cell::Field(train, *row, c)),
                }),
        );
    }
    writer.save(&public.join("test.csv"))?;
    let mut writer = input.answer.writer();
    writer.header();
    for row in rows_like(input.answer) {
        writer.row(input.answer.columns().iter().map(|name| match answers {
            Answers::OneHot { column, hot, cold } if columns.id.as_ref() != Some(name) => {
                let right = train.value(*row, *column).is_some_and(|v| v == name.as_str());
                Cell::Text(if right { hot } else { cold }.as_str().into())
            }
            _ => source(name).map_or_else(|| id_cell(*row), |c| Cell::Field(train, *row, c)),
        }));
    }
    writer.save(&out.join("private/test_answer.csv"))?;
    let mut writer = input.sample.writer();
    writer.header();
    for (n, row) in rows_like(input.sample).iter().enumerate() {
        writer.row(input.sample.columns().iter().enumerate().map(|(c, name)| {
            if columns.id.as_ref() == Some(name) {
                id_cell(*row)
            } else if let (Some(column), true) = (source(name), test.position(name).is_some()) {
                Cell::Field(train, *row, column)
            } else {
                // The real fill values, in their order.
                Cell::Field(input.sample, n % input.sample.len().max(1), c)
            }
        }));
    }
    writer.save(&public.join("sample_submission.csv"))?;
    Ok(Ok(Split {
        how,
        train_rows: kept,
        test_rows: rows_like(test).len(),
        by_time,
        notes: plan.notes,
    }))
}

/// Makes the split of a ranking task: the ids stay, their last items are held back.
fn hold_back(
    input: &SplitInput<'_>,
    target: &str,
    rule: &HeldBack,
    out: &Path,
) -> Result<Result<Split, String>, GymError> {
    let (train, test) = (input.train, input.test);
    let Some(id) = input.columns.id.as_deref() else {
        return Ok(Err("the submission has no identifier".to_owned()));
    };
    let chosen = match rule.choose(id, train, test, input.settings) {
        Ok(chosen) => chosen,
        Err(reason) => return Ok(Err(reason)),
    };
    let public = out.join("public");
    let pair = Some((id, train.columns()[rule.item].as_str()));
    let secret = [target.to_owned()];
    let row_files = RowFiles {
        train,
        test,
        held: &chosen.held,
        id: Some(id),
        secret: &secret,
        pair,
    };
    // The ids are in both parts, so nothing that is keyed by them is divided.
    let plan = match plan_files(&row_files, input.public, &side_files(input), &public)? {
        Ok(plan) => plan,
        Err(reason) => return Ok(Err(reason)),
    };
    for (from, to) in &plan.links {
        link_file(&input.public.join(from), &public.join(to))?;
    }
    let mut writer = train.writer();
    writer.header();
    (0..train.len())
        .filter(|row| !chosen.held[*row])
        .for_each(|row| writer.copy(row));
    writer.save(&public.join("train.csv"))?;
    let mut writer = test.writer();
    writer.header();
    chosen.answers.iter().for_each(|(row, _)| writer.copy(*row));
    writer.save(&public.join("test.csv"))?;
    let id_test = test.position(id);
    let id_cell = |row: usize| id_test.map_or(Cell::Text("".into()), |c| Cell::Field(test, row, c));
    let mut writer = input.answer.writer();
    writer.header();
    for (row, text) in &chosen.answers {
        writer.row(input.answer.columns().iter().map(|name| {
            if name == target {
                Cell::Text(text.as_str().into())
            } else {
                id_cell(*row)
            }
        }));
    }
    writer.save(&out.join("private/test_answer.csv"))?;
    let place: HashMap<Cow<'_, str>, usize> = match input.sample.position(id) {
        Some(column) => input
            .sample
            .column(column)
            .into_iter()
            .enumerate()
            .map(|(row, v)| (v, row))
            .collect(),
        None => HashMap::new(),
    };
    let mut writer = input.sample.writer();
    writer.header();
    for (row, _) in &chosen.answers {
        let value = id_test.and_then(|c| test.value(*row, c)).unwrap_or_default();
        if let Some(row) = place.get(&value) {
            writer.copy(*row);
        }
    }
    writer.save(&public.join("sample_submission.csv"))?;
    let kept = chosen.held.iter().filter(|h| !**h).count();
    Ok(Ok(Split {
        how: chosen.how,
        train_rows: kept,
        test_rows: chosen.answers.len(),
        by_time: true,
        notes: plan.notes,
    }))
}

/// Public files other than the three tables.
fn side_files(input: &SplitInput<'_>) -> Vec<String> {
    input
        .public_files
        .iter()
        .filter(|p| !["train.csv", "test.csv", "sample_submission.csv"].contains(&p.as_str()))
        .cloned()
        .collect()
}
