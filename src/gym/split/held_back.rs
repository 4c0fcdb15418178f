//! Ranking tasks: the answer of an id is a list of items that it met later than all of its training rows.
//! The validation answers are then the last items of each id's training rows.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::gym::manifest::ValidationSettings;
use crate::gym::split::choose::DEFAULT_SEED;
use crate::gym::split::time::{is_time_name, read_order};
use crate::gym::table::Table;

/// Share of the answers' items that must be values of the item column.
const KNOWN_ITEMS: f64 = 0.5;
/// Share of the test ids that must have training rows.
const KNOWN_IDS: f64 = 0.9;

/// How the answers of a ranking task follow from its training rows.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// Identifier in `train.csv`.
    pub id: usize,
    /// Column of the items.
    pub item: usize,
    /// Column that orders an id's rows; `None` when they are drawn.
    pub order: Option<usize>,
    /// Items of one answer.
    pub per_id: usize,
}

/// Held-back rows and the answers that they make.
#[derive(Debug)]
pub struct Interactions {
    /// For each row of `train.csv`, whether it is held back.
    pub held: Vec<bool>,
    /// Rows of `test.csv` that have an answer, and the answer's text.
    pub answers: Vec<(usize, String)>,
    /// How the rows were chosen, for people.
    pub how: String,
}

impl HeldBack {
    /// Recognises a ranking task: one hidden target that lists values of a training column, for ids that also have training rows.
    pub fn find(id: &str, target: &str, train: &Table, test: &Table, answers: &Table) -> Option<Self> {
        let id_train = train.position(id)?;
        let known: HashSet<Cow<'_, str>> = train.column(id_train).into_iter().collect();
        let test_ids = test.column(test.position(id)?);
        let met = test_ids.iter().filter(|v| known.contains(*v)).count();
        if known.len() == train.len() || (met as f64) < KNOWN_IDS * test_ids.len() as f64 {
            return None;
        }
        let lists = answers.column(answers.position(target)?);
        let mut sizes: Vec<usize> = lists.iter().map(|l| l.split_whitespace().count()).collect();
        let total: usize = sizes.iter().sum();
        let hits = |column: usize| {
            let values: HashSet<Cow<'_, str>> = train.column(column).into_iter().collect();
            lists
                .iter()
                .flat_map(|l| l.split_whitespace())
                .filter(|i| values.contains(*i))
                .count()
        };
        let (item, best) = (0..train.columns().len())
            .filter(|c| *c != id_train && test.position(&train.columns()[*c]).is_none())
            .map(|c| (c, hits(c)))
            .max_by_key(|(c, n)| (*n, std::cmp::Reverse(*c)))?;
        if total == 0 || (best as f64) < KNOWN_ITEMS * total as f64 {
            return None;
        }
        sizes.sort_unstable();
        let order = (0..train.columns().len())
            .filter(|c| *c != id_train && *c != item && is_time_name(&train.columns()[*c]))
            .find(|c| read_order(&train.column(*c)).is_some());
        Some(Self {
            id: id_train,
            item,
            order,
            per_id: sizes[sizes.len() / 2].max(1),
        })
    }

    /// Holds back the last items of every test id that keeps at least as many rows as it loses.
    pub fn choose(
        &self,
        id: &str,
        train: &Table,
        test: &Table,
        settings: &ValidationSettings,
    ) -> Result<Interactions, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed.unwrap_or(DEFAULT_SEED));
        let order = match &settings.time_column {
            Some(name) => Some(
                train
                    .position(name)
                    .ok_or_else(|| format!("validation.time_column '{name}' is not a column of train.csv"))?,
            ),
            None => self.order,
        };
        let times = order.and_then(|c| read_order(&train.column(c)));
        let mut rows_of: HashMap<Cow<'_, str>, Vec<usize>> = HashMap::new();
        for (row, value) in train.column(self.id).into_iter().enumerate() {
            rows_of.entry(value).or_default().push(row);
        }
        let items = train.column(self.item);
        let mut held = vec![false; train.len()];
        let mut answers = Vec::new();
        let test_id = test
            .position(id)
            .ok_or_else(|| format!("test.csv has no column '{id}'"))?;
        for (test_row, value) in test.column(test_id).into_iter().enumerate() {
            let Some(rows) = rows_of.get(&value) else { continue };
            if rows.len() < 2 * self.per_id {
                continue;
            }
            let mut rows = rows.clone();
            match &times {
                // A stable sort: rows of one time keep the file's order.
                Some(times) => rows.sort_by(|a, b| {
                    let time = |row: usize| times[row].unwrap_or(f64::NEG_INFINITY);
                    time(*a).total_cmp(&time(*b))
                }),
                None => rows.shuffle(&mut rng),
            }
            let last = &rows[rows.len() - self.per_id..];
            answers.push((
                test_row,
                last.iter()
                    .map(|row| items[*row].as_ref())
                    .collect::<Vec<_>>()
                    .join(" "),
            ));
            // An item that is held back must not be found in another row of the same id.
            let hidden: HashSet<&str> = last.iter().map(|row| items[*row].as_ref()).collect();
            rows.iter()
                .filter(|row| hidden.contains(items[**row].as_ref()))
                .for_each(|row| held[*row] = true);
        }
        if answers.is_empty() {
            return Err(format!(
                "no value of '{id}' has {} training rows to hold {} back",
                2 * self.per_id,
                self.per_id
            ));
        }
        let by = order.map_or("drawn".to_owned(), |c| format!("the last by '{}'", train.columns()[c]));
        let how = format!("{} rows of each '{id}' held back ({by})", self.per_id);
        Ok(Interactions { held, answers, how })
    }
}
