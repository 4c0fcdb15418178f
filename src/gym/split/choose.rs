//! Which training rows are held out: by time, by group, or drawn so that the classes keep their shares.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::gym::columns::Columns;
use crate::gym::manifest::{Unit, ValidationSettings};
use crate::gym::split::time::{is_missing, read_times};
use crate::gym::table::Table;

/// Share of the training rows that is held out when nothing else says so.
pub const DEFAULT_RATIO: f64 = 0.2;
/// Seed of the draw when the package gives none.
pub const DEFAULT_SEED: u64 = 20;
/// Groups that a column must have at least, so that a fifth of them can be held out.
const MIN_GROUPS: usize = 4;
/// A column is a group when its values could not lie apart by chance: the logarithm of that chance is below this.
const CHANCE: f64 = -20.0;
/// Orders of the groups that are tried for the best balance.
const GROUP_DRAWS: usize = 32;
/// A whole-number target with more distinct values is not taken for a class.
const MAX_CLASSES: usize = 200;

/// The choice of the held-out rows.
#[derive(Debug, Clone)]
pub struct Choice {
    /// For each row of `train.csv`, whether it is held out.
    pub held: Vec<bool>,
    /// How the rows were chosen, for people.
    pub how: String,
    /// The rows are held out by time.
    pub by_time: bool,
}

/// What the choice is made from.
#[derive(Debug)]
pub struct Rows<'a> {
    /// `train.csv`.
    pub train: &'a Table,
    /// `test.csv`.
    pub test: &'a Table,
    /// Roles of the columns.
    pub columns: &'a Columns,
    /// Columns of `train.csv` that hold the targets.
    pub targets: &'a [usize],
    /// Settings of the package.
    pub settings: &'a ValidationSettings,
}

/// Chooses the held-out rows; an error says why it cannot be done.
pub fn choose(rows: &Rows<'_>) -> Result<Choice, String> {
    let settings = rows.settings;
    let units = rows.units();
    if let Some(name) = &settings.time_column {
        let column = rows
            .train
            .position(name)
            .ok_or_else(|| format!("validation.time_column '{name}' is not a column of train.csv"))?;
        let values = rows.train.column(column);
        let (times, _) = read_times(&format!("{name} date"), &values, &values)
            .ok_or_else(|| format!("validation.time_column '{name}' does not hold times in one format"))?;
        return by_time(rows, name, &times)
            .ok_or_else(|| format!("'{name}' has too few different times to hold out the last ones"));
    }
    if let Some(name) = &settings.group_column {
        let column = rows
            .train
            .position(name)
            .ok_or_else(|| format!("validation.group_column '{name}' is not a column of train.csv"))?;
        return by_group(rows, name, column, "as task.toml says").ok_or_else(|| format!("'{name}' has only one group"));
    }
    if settings.unit != Some(Unit::Row) {
        if let Some(choice) = find_time(rows).and_then(|(name, times)| by_time(rows, &name, &times)) {
            return Ok(choice);
        }
        if let Some((name, column)) = find_group(rows)
            && let Some(choice) = by_group(rows, &name, column, "no value of it is in both train.csv and test.csv")
        {
            return Ok(choice);
        }
    }
    Ok(by_class(rows, &units))
}

impl Rows<'_> {
    fn ratio(&self) -> f64 {
        self.settings.ratio.unwrap_or(DEFAULT_RATIO)
    }

    fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.settings.seed.unwrap_or(DEFAULT_SEED))
    }

    /// Rows that stay together: those of one identifier.
    fn units(&self) -> Vec<Vec<usize>> {
        let id = self.columns.id.as_ref().and_then(|id| self.train.position(id));
        let Some(id) = id else {
            return (0..self.train.len()).map(|row| vec![row]).collect();
        };
        let mut place: HashMap<Cow<'_, str>, usize> = HashMap::new();
        let mut units: Vec<Vec<usize>> = Vec::new();
        for (row, value) in self.train.column(id).into_iter().enumerate() {
            let next = units.len();
            let at = *place.entry(value).or_insert(next);
            if at == next {
                units.push(Vec::new());
            }
            units[at].push(row);
        }
        units
    }

    /// Columns of both tables that are neither identifier nor target.
    fn shared(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        let id = self.columns.id.as_deref();
        self.train.columns().iter().enumerate().filter_map(move |(n, name)| {
            let test = self.test.position(name)?;
            (Some(name.as_str()) != id && !self.targets.contains(&n)).then_some((n, test, name.as_str()))
        })
    }

    /// Class of a row: its targets together, when each of them is a class.
    fn classes(&self) -> Option<Vec<String>> {
        let columns: Vec<Vec<Cow<'_, str>>> = self.targets.iter().map(|c| self.train.column(*c)).collect();
        if columns.is_empty() || !columns.iter().all(|c| is_categorical(c)) {
            return None;
        }
        Some(
            (0..self.train.len())
                .map(|row| {
                    columns
                        .iter()
                        .map(|c| c[row].as_ref())
                        .collect::<Vec<_>>()
                        .join("\u{1f}")
                })
                .collect(),
        )
    }
}

/// Whether a target is a class: text, or few different whole numbers.
pub fn is_categorical(values: &[Cow<'_, str>]) -> bool {
    let present: Vec<&Cow<'_, str>> = values.iter().filter(|v| !is_missing(v)).collect();
    let distinct: HashSet<&str> = present.iter().map(|v| v.trim()).collect();
    if distinct.is_empty() || distinct.len() > MAX_CLASSES || distinct.len() * 4 > present.len() {
        return false;
    }
    let numbers = distinct
        .iter()
        .filter_map(|v| v.parse::<f64>().ok())
        .collect::<Vec<_>>();
    if numbers.len() * 2 < distinct.len() {
        return true;
    }
    numbers.iter().all(|v| v.fract() == 0.0) && (distinct.len() <= 30 || distinct.len() * 20 <= present.len())
}

/// Holds out the latest times, as many rows as the real test has but at most the wanted share; one time is never divided.
fn by_time(rows: &Rows<'_>, name: &str, times: &[Option<f64>]) -> Option<Choice> {
    let total = times.len();
    let share = (rows.ratio() * total as f64).round() as usize;
    let wanted = if rows.settings.ratio.is_some() {
        share
    } else {
        share.min(rows.test.len())
    }
    .max(1);
    let mut counts: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
    for time in times.iter().flatten() {
        counts.entry(sortable(*time)).or_insert((*time, 0)).1 += 1;
    }
    let mut held_rows = 0;
    let mut first_held = None;
    for (time, count) in counts.values().rev() {
        // The block that passes the wanted size is taken when that comes nearer to it.
        if held_rows > 0 && (held_rows + count).saturating_sub(wanted) > wanted - held_rows {
            break;
        }
        held_rows += count;
        first_held = Some(*time);
        if held_rows >= wanted {
            break;
        }
    }
    let first = first_held?;
    if held_rows * 2 > total || counts.len() < 2 {
        return None;
    }
    let why = if rows.settings.time_column.is_some() {
        "as task.toml says"
    } else {
        "all times of test.csv are after those of train.csv"
    };
    let how = format!("the latest rows by '{name}' ({why})");
    Some(Choice {
        held: times.iter().map(|t| t.is_some_and(|t| t >= first)).collect(),
        how,
        by_time: true,
    })
}

/// Order-keeping bits of a number.
fn sortable(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The column that shows that the package was split by time: all its test values are after all training values.
fn find_time(rows: &Rows<'_>) -> Option<(String, Vec<Option<f64>>)> {
    let id = rows
        .columns
        .id
        .as_deref()
        .and_then(|id| Some((rows.train.position(id)?, rows.test.position(id)?, id)));
    let mut best: Option<(bool, usize, String, Vec<Option<f64>>)> = None;
    for (train, test, name) in id.into_iter().chain(rows.shared()) {
        let Some((before, after)) = read_times(name, &rows.train.column(train), &rows.test.column(test)) else {
            continue;
        };
        let missing = before.iter().filter(|t| t.is_none()).count();
        let last = before.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = after.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        if missing * 5 > before.len() || after.iter().any(Option::is_none) || first <= last || !last.is_finite() {
            continue;
        }
        let distinct = before
            .iter()
            .flatten()
            .map(|t| t.to_bits())
            .collect::<HashSet<_>>()
            .len();
        // A column without gaps is better than one with gaps, then the finer one.
        let candidate = (missing == 0, distinct);
        if best
            .as_ref()
            .is_none_or(|(complete, n, ..)| candidate > (*complete, *n))
        {
            best = Some((candidate.0, candidate.1, name.to_owned(), before));
        }
    }
    best.map(|(_, _, name, times)| (name, times))
}

/// The column that shows that the package was split by groups: its values repeat, but none is in both tables.
fn find_group(rows: &Rows<'_>) -> Option<(String, usize)> {
    let share = rows.train.len() as f64 / (rows.train.len() + rows.test.len()) as f64;
    let mut best: Option<(usize, String, usize)> = None;
    for (train, test, name) in rows.shared() {
        let mut counts: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for value in rows.train.column(train) {
            *counts.entry(value).or_default() += 1;
        }
        let groups = counts.len();
        if groups < MIN_GROUPS {
            continue;
        }
        let mut in_test: HashMap<Cow<'_, str>, usize> = HashMap::new();
        let apart = rows.test.column(test).into_iter().all(|value| {
            let apart = !counts.contains_key(&value);
            *in_test.entry(value).or_default() += 1;
            apart
        });
        if !apart {
            continue;
        }
        let chance: f64 = counts
            .values()
            .chain(in_test.values())
            .map(|n| (share.powf(*n as f64) + (1.0 - share).powf(*n as f64)).ln())
            .sum();
        if chance < CHANCE && best.as_ref().is_none_or(|(n, ..)| groups < *n) {
            best = Some((groups, name.to_owned(), train));
        }
    }
    best.map(|(_, name, column)| (name, column))
}

/// Holds out whole groups; of several orders of the groups, the one that keeps size and classes best.
fn by_group(rows: &Rows<'_>, name: &str, column: usize, why: &str) -> Option<Choice> {
    let values = rows.train.column(column);
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (row, value) in values.iter().enumerate() {
        let next = groups.len();
        let at = *place.entry(value.as_ref()).or_insert(next);
        if at == next {
            groups.push(Vec::new());
        }
        groups[at].push(row);
    }
    if groups.len() < 2 {
        return None;
    }
    let total = rows.train.len();
    let wanted = (rows.ratio() * total as f64).round().max(1.0);
    let classes = rows.classes();
    let mut whole: HashMap<&str, f64> = HashMap::new();
    for class in classes.iter().flatten() {
        *whole.entry(class).or_default() += 1.0 / total as f64;
    }
    let mut rng = rows.rng();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    let mut best: Option<(f64, Vec<bool>)> = None;
    for _ in 0..GROUP_DRAWS {
        order.shuffle(&mut rng);
        let mut held = vec![false; total];
        let mut count = 0.0;
        for group in order.iter().take(groups.len() - 1).map(|g| &groups[*g]) {
            let size = group.len() as f64;
            if count > 0.0 && (count + size - wanted).abs() > (count - wanted).abs() {
                continue;
            }
            count += size;
            group.iter().for_each(|row| held[*row] = true);
            if count >= wanted {
                break;
            }
        }
        let mut error = (count - wanted).abs() / wanted;
        if let Some(classes) = &classes {
            let mut part: HashMap<&str, f64> = whole.keys().map(|c| (*c, 0.0)).collect();
            for (class, _) in classes.iter().zip(&held).filter(|(_, held)| **held) {
                *part.entry(class).or_default() += 1.0 / count;
            }
            error += part
                .iter()
                .map(|(class, share)| (share - whole.get(class).copied().unwrap_or(0.0)).abs())
                .sum::<f64>();
        }
        if best.as_ref().is_none_or(|(e, _)| error < *e) {
            best = Some((error, held));
        }
    }
    let held = best?.1;
    let how = format!("whole groups of '{name}' ({why})");
    Some(Choice {
        held,
        how,
        by_time: false,
    })
}

/// Draws units so that every class keeps its share; without classes, plainly.
fn by_class(rows: &Rows<'_>, units: &[Vec<usize>]) -> Choice {
    let classes = rows.classes();
    let mut strata: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (n, unit) in units.iter().enumerate() {
        let class = classes.as_ref().map_or("", |c| c[unit[0]].as_str());
        strata.entry(class).or_default().push(n);
    }
    // Classes too small to be divided share one stratum.
    let (mut strata, rare): (Vec<Vec<usize>>, Vec<Vec<usize>>) = strata.into_values().partition(|s| s.len() >= 4);
    let rare: Vec<usize> = rare.into_iter().flatten().collect();
    if !rare.is_empty() {
        strata.push(rare);
    }
    let ratio = rows.ratio();
    let mut rng = rows.rng();
    let total = (ratio * units.len() as f64)
        .round()
        .clamp(1.0, (units.len().max(2) - 1) as f64) as usize;
    let mut sizes: Vec<(usize, f64)> = strata
        .iter()
        .map(|s| {
            let exact = ratio * s.len() as f64;
            (exact.floor() as usize, exact.fract())
        })
        .collect();
    let mut open = total.saturating_sub(sizes.iter().map(|s| s.0).sum());
    let mut by_rest: Vec<usize> = (0..sizes.len()).collect();
    // A stratum that would give nothing comes first, then the largest rests.
    by_rest.sort_by(|a, b| {
        (sizes[*a].0 > 0)
            .cmp(&(sizes[*b].0 > 0))
            .then(sizes[*b].1.total_cmp(&sizes[*a].1))
    });
    for stratum in by_rest {
        if open == 0 {
            break;
        }
        sizes[stratum].0 += 1;
        open -= 1;
    }
    let mut held = vec![false; rows.train.len()];
    for (stratum, (size, _)) in strata.iter_mut().zip(sizes) {
        stratum.shuffle(&mut rng);
        // One of each stratum stays for training.
        for unit in stratum.iter().take(size.min(stratum.len() - 1)) {
            units[*unit].iter().for_each(|row| held[*row] = true);
        }
    }
    let how = if classes.is_some() {
        "drawn so that the classes keep their shares"
    } else {
        "drawn at random"
    };
    Choice {
        held,
        how: how.to_owned(),
        by_time: false,
    }
}
