//! Public files beside the four tables: files of single rows (images, recordings), tables keyed by the identifier, and the rest.
//! In the validation package they lie where the real test's files lie, and tell nothing about held-out rows that the real ones would not tell about test rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::gym::checks::is_table_path;
use crate::gym::error::{GymError, io};
use crate::gym::table::{Cell, Table};

/// Share of the training rows that must have a file before files are taken for files of rows.
const COVERAGE: f64 = 0.5;
/// Formats that may hold rows of the training data in a way that is not understood here.
const OPAQUE: [&str; 22] = [
    "npy", "npz", "parquet", "feather", "arrow", "pkl", "pickle", "h5", "hdf5", "mat", "json", "jsonl", "xlsx", "xls",
    "zip", "tar", "tgz", "7z", "gz", "db", "sqlite", "rds",
];

/// Whose file or row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A row that stays in the training part.
    Kept,
    /// A held-out row.
    Held,
    /// A row of the real test.
    Test,
    /// Rows of more than one kind.
    Shared,
}

/// What the files are sorted by.
#[derive(Debug)]
pub struct RowFiles<'a> {
    /// `train.csv`.
    pub train: &'a Table,
    /// `test.csv`.
    pub test: &'a Table,
    /// For each training row, whether it is held out.
    pub held: &'a [bool],
    /// Identifier.
    pub id: Option<&'a str>,
    /// Target columns.
    pub secret: &'a [String],
    /// Identifier and item of rows that are held back from ids which are in both parts.
    pub pair: Option<(&'a str, &'a str)>,
}

/// What becomes of a public file, and the new texts of cells that name moved files.
#[derive(Debug, Default)]
pub struct FilePlan {
    /// Files to link, as (path in `public`, path in the validation's `public`).
    pub links: Vec<(String, String)>,
    /// New texts of cells, by training row and column of `test.csv`.
    pub renamed: HashMap<(usize, usize), String>,
    /// Remarks for people.
    pub notes: Vec<String>,
}

/// The owner of each value of the identifier.
fn owners(files: &RowFiles<'_>) -> HashMap<String, Owner> {
    let mut owners: HashMap<String, Owner> = HashMap::new();
    let mut add = |value: Cow<'_, str>, owner: Owner| {
        owners
            .entry(value.into_owned())
            .and_modify(|o| {
                if *o != owner {
                    *o = Owner::Shared
                }
            })
            .or_insert(owner);
    };
    let Some(id) = files.id else { return HashMap::new() };
    if let Some(column) = files.train.position(id) {
        for (value, held) in files.train.column(column).into_iter().zip(files.held) {
            add(value, if *held { Owner::Held } else { Owner::Kept });
        }
    }
    if let Some(column) = files.test.position(id) {
        files
            .test
            .column(column)
            .into_iter()
            .for_each(|value| add(value, Owner::Test));
    }
    owners
}

/// A way in which a file's path names its row: the path is `folder` + row's name + `rest`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Layer {
    folder: String,
    rest: String,
}

impl Layer {
    /// Kind of file: what follows the row's name, without the format.
    fn kind(&self) -> &str {
        self.rest.rfind('.').map_or(self.rest.as_str(), |dot| &self.rest[..dot])
    }
}

/// Plans the files of `paths` (relative to `public`, without the four tables). Tables keyed by the identifier are written to `out`.
pub fn plan_files(
    files: &RowFiles<'_>,
    public: &Path,
    paths: &[String],
    out: &Path,
) -> Result<Result<FilePlan, String>, GymError> {
    let owners = owners(files);
    let mut plan = FilePlan::default();
    let (tables, others): (Vec<&String>, Vec<&String>) = paths.iter().partition(|p| is_table_path(p));
    if let Err(reason) = plan_row_files(files, &owners, &others, &mut plan) {
        return Ok(Err(reason));
    }
    if let Err(reason) = write_tables(files, &owners, public, &tables, out, &mut plan)? {
        return Ok(Err(reason));
    }
    Ok(Ok(plan))
}

/// Places the files that belong to single rows; the others are kept as they are.
fn plan_row_files(
    files: &RowFiles<'_>,
    owners: &HashMap<String, Owner>,
    paths: &[&String],
    plan: &mut FilePlan,
) -> Result<(), String> {
    let named: HashMap<&str, (&str, Layer)> = paths
        .iter()
        .filter_map(|path| {
            let (name, layer) = row_name(path, |name| owners.contains_key(name))?;
            Some((path.as_str(), (name, layer)))
        })
        .collect();
    let with_files: HashSet<&str> = named.values().map(|(name, _)| *name).collect();
    let trained = owners
        .iter()
        .filter(|(_, o)| matches!(o, Owner::Kept | Owner::Held))
        .count();
    let covered = with_files
        .iter()
        .filter(|n| matches!(owners.get(**n), Some(Owner::Kept | Owner::Held)))
        .count();
    let by_name = trained > 0 && covered as f64 >= COVERAGE * trained as f64;
    let cells = path_cells(files, paths);
    let mut place: BTreeMap<&str, (Owner, Layer)> = BTreeMap::new();
    for path in paths.iter().map(|p| p.as_str()) {
        let from_cell = cells.get(path).map(|cell| (cell.owner, file_layer(path)));
        let from_name = named
            .get(path)
            .filter(|_| by_name)
            .and_then(|(name, layer)| Some((*owners.get(*name)?, layer.clone())));
        if let Some(found) = from_cell.or(from_name) {
            place.insert(path, found);
        }
    }
    // Where the files of real test rows lie, for each kind of file; and whether training rows have several files of a kind
    // (an image and a mask), which then must not be mistaken for one another.
    let mut test_folders: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    let mut one_each: BTreeMap<&str, bool> = BTreeMap::new();
    let mut seen: HashMap<(&str, &str), &str> = HashMap::new();
    for (path, (owner, layer)) in &place {
        if *owner == Owner::Test {
            test_folders.entry(layer.kind()).or_default().insert(&layer.folder);
            continue;
        }
        let row = &path[layer.folder.len()..path.len() - if layer.rest == "/" { 0 } else { layer.rest.len() }];
        let row = if layer.rest == "/" {
            row.split('/').next().unwrap_or(row)
        } else {
            row
        };
        let single = *seen.entry((row, layer.kind())).or_insert(&layer.folder) == layer.folder;
        *one_each.entry(layer.kind()).or_insert(true) &= single;
    }
    let mut dropped = 0_usize;
    for path in paths.iter().map(|p| p.as_str()) {
        let Some((owner, layer)) = place.get(path) else {
            opaque(path)?;
            if is_opaque(path) {
                plan.notes.push(format!(
                    "{path} is kept as it is; its format was not searched for labels"
                ));
            }
            plan.links.push((path.to_owned(), path.to_owned()));
            continue;
        };
        match owner {
            Owner::Test => {}
            Owner::Kept | Owner::Shared => plan.links.push((path.to_owned(), path.to_owned())),
            Owner::Held => match test_folder(
                layer,
                test_folders.get(layer.kind()),
                one_each.get(layer.kind()) == Some(&true),
            ) {
                Some(folder) => {
                    let moved = format!("{folder}{}", &path[layer.folder.len()..]);
                    if moved != path
                        && let Some(cell) = cells.get(path)
                    {
                        for (row, column, text) in &cell.places {
                            plan.renamed.insert((*row, *column), text.replace(path, &moved));
                        }
                    }
                    plan.links.push((path.to_owned(), moved));
                }
                None => dropped += 1,
            },
        }
    }
    if dropped > 0 {
        plan.notes.push(format!(
            "{dropped} files of held-out rows are left out, because test rows have no such files"
        ));
    }
    Ok(())
}

/// The folder in which a held-out row's file lies as a test file; `None` when test rows have no such file.
/// Any test folder will do when a row has `one` file of the kind (folders named by class).
fn test_folder<'a>(layer: &'a Layer, folders: Option<&HashSet<&'a str>>, one: bool) -> Option<&'a str> {
    let folders = folders?;
    if folders.contains(layer.folder.as_str()) {
        return Some(&layer.folder);
    }
    let swapped = swap_train(&layer.folder);
    if let Some(same) = folders.iter().find(|f| swapped.as_deref() == Some(**f)) {
        return Some(same);
    }
    if one { folders.iter().copied().min() } else { None }
}

/// A name with its last `train` turned into `test`.
fn swap_train(name: &str) -> Option<String> {
    [
        ("training", "testing"),
        ("train", "test"),
        ("Train", "Test"),
        ("TRAIN", "TEST"),
    ]
    .into_iter()
    .find_map(|(from, to)| {
        let at = name.rfind(from)?;
        Some(format!("{}{to}{}", &name[..at], &name[at + from.len()..]))
    })
}

/// The row that a path names, by a folder or by the file's name with or without its endings.
fn row_name(path: &str, known: impl Fn(&str) -> bool) -> Option<(&str, Layer)> {
    let file_start = path.rfind('/').map_or(0, |at| at + 1);
    let file = &path[file_start..];
    let mut ends: Vec<usize> = vec![file.len()];
    ends.extend(
        file.char_indices()
            .rev()
            .filter(|(_, c)| matches!(c, '.' | '_' | '-'))
            .map(|(at, _)| at),
    );
    for end in ends.into_iter().filter(|end| *end > 0) {
        if known(&file[..end]) {
            let layer = Layer {
                folder: path[..file_start].to_owned(),
                rest: file[end..].to_owned(),
            };
            return Some((&file[..end], layer));
        }
    }
    let mut start = 0;
    for part in path[..file_start].split_terminator('/') {
        if known(part) {
            return Some((
                part,
                Layer {
                    folder: path[..start].to_owned(),
                    rest: "/".to_owned(),
                },
            ));
        }
        start += part.len() + 1;
    }
    None
}

fn file_layer(path: &str) -> Layer {
    let start = path.rfind('/').map_or(0, |at| at + 1);
    let rest = path[start..].rfind('.').map_or("", |dot| &path[start + dot..]);
    Layer {
        folder: path[..start].to_owned(),
        rest: rest.to_owned(),
    }
}

/// Cells that give the path of a file.
#[derive(Debug)]
struct PathCells {
    owner: Owner,
    /// Training row, column of `test.csv`, text.
    places: Vec<(usize, usize, String)>,
}

/// Files that are named by path in a column of both tables.
fn path_cells<'p>(files: &RowFiles<'_>, paths: &[&'p String]) -> HashMap<&'p str, PathCells> {
    let known: HashSet<&'p str> = paths.iter().map(|p| p.as_str()).filter(|p| p.contains('/')).collect();
    let mut found: HashMap<&'p str, PathCells> = HashMap::new();
    if known.is_empty() {
        return found;
    }
    // A cell may have folders of the author's machine before the package's path.
    let resolve = |text: &str| {
        let mut rest = text.trim().trim_start_matches("./");
        loop {
            if let Some(path) = known.get(rest) {
                return Some(*path);
            }
            rest = rest.split_once('/')?.1;
        }
    };
    for (name, test_column) in files.test.columns().iter().enumerate().map(|(n, c)| (c, n)) {
        let Some(train_column) = files.train.position(name) else {
            continue;
        };
        let values = files.train.column(train_column);
        if values.iter().take(50).filter(|v| resolve(v).is_some()).count() * 2 < values.len().min(50) {
            continue;
        }
        let mut add = |text: Cow<'_, str>, owner: Owner, row: Option<usize>| {
            let Some(path) = resolve(&text) else { return };
            let cell = found.entry(path).or_insert(PathCells {
                owner,
                places: Vec::new(),
            });
            if cell.owner != owner {
                cell.owner = Owner::Shared;
            }
            cell.places.extend(row.map(|row| (row, test_column, text.into_owned())));
        };
        for (row, (text, held)) in values.into_iter().zip(files.held).enumerate() {
            add(text, if *held { Owner::Held } else { Owner::Kept }, held.then_some(row));
        }
        files
            .test
            .column(test_column)
            .into_iter()
            .for_each(|text| add(text, Owner::Test, None));
    }
    found
}

fn is_opaque(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    lower.rsplit_once('.').is_some_and(|(_, end)| OPAQUE.contains(&end))
}

/// Refuses files that look like training data in a format that cannot be divided.
fn opaque(path: &str) -> Result<(), String> {
    if is_opaque(path) && path.to_ascii_lowercase().contains("train") {
        return Err(format!(
            "{path} looks like training data in a format that cannot be divided; bring utils/split.py"
        ));
    }
    Ok(())
}

/// A table beside the four, with the owners of its rows.
struct SideTable<'p> {
    path: &'p str,
    table: Table,
    owners: Vec<Option<Owner>>,
}

impl SideTable<'_> {
    fn has(&self, wanted: &[Owner]) -> bool {
        self.owners.iter().flatten().any(|o| wanted.contains(o))
    }

    fn is_train(&self) -> bool {
        self.has(&[Owner::Kept, Owner::Held]) && !self.has(&[Owner::Test])
    }

    fn is_test(&self) -> bool {
        self.has(&[Owner::Test]) && !self.has(&[Owner::Kept, Owner::Held])
    }
}

/// Divides the tables that are keyed by the identifier like the rows themselves.
fn write_tables(
    files: &RowFiles<'_>,
    owners: &HashMap<String, Owner>,
    public: &Path,
    paths: &[&String],
    out: &Path,
    plan: &mut FilePlan,
) -> Result<Result<(), String>, GymError> {
    let mut sides = Vec::new();
    for path in paths {
        let table = Table::read(&public.join(path))?;
        if let Some(columns) = files
            .pair
            .and_then(|(id, item)| Some((table.position(id)?, table.position(item)?)))
        {
            write_without_pairs(files, path, &table, columns, out)?;
            continue;
        }
        let secret = files.secret.iter().any(|s| table.position(s).is_some());
        match files.id.and_then(|id| table.position(id)) {
            Some(key) => {
                let owners = table
                    .column(key)
                    .into_iter()
                    .map(|v| owners.get(v.as_ref()).copied())
                    .collect();
                sides.push(SideTable { path, table, owners });
            }
            None if secret
                && files
                    .train
                    .columns()
                    .iter()
                    .filter(|c| table.position(c).is_some())
                    .count()
                    > 1 =>
            {
                plan.notes.push(format!(
                    "{path} is left out: it repeats labelled training columns without the identifier"
                ));
            }
            None => plan.links.push(((*path).clone(), (*path).clone())),
        }
    }
    let partner = |train: &SideTable<'_>| {
        let swapped = swap_train(train.path);
        sides
            .iter()
            .filter(|s| s.is_test())
            .find(|s| swapped.as_deref() == Some(s.path))
            .or_else(|| {
                let mut same = sides
                    .iter()
                    .filter(|s| s.is_test() && s.table.columns() == train.table.columns());
                same.next().filter(|_| same.next().is_none())
            })
    };
    let mut used: HashSet<&str> = HashSet::new();
    for side in &sides {
        if side.is_train() {
            let kept = |owner: &Option<Owner>| *owner != Some(Owner::Held);
            save(side, kept, out)?;
            let Some(test) = partner(side) else {
                plan.notes.push(format!(
                    "{} has no counterpart for test rows; its held-out rows are left out",
                    side.path
                ));
                continue;
            };
            used.insert(test.path);
            let columns: Option<Vec<usize>> = test.table.columns().iter().map(|c| side.table.position(c)).collect();
            let Some(columns) = columns else {
                return Ok(Err(format!("{} has columns that {} lacks", test.path, side.path)));
            };
            let mut writer = test.table.writer();
            writer.header();
            for row in (0..side.table.len()).filter(|row| side.owners[*row] == Some(Owner::Held)) {
                writer.row(columns.iter().map(|c| Cell::Field(&side.table, row, *c)));
            }
            writer.save(&out.join(test.path))?;
        } else if !side.is_test() {
            write_common(side, files.secret, out)?;
        }
    }
    Ok(match sides.iter().find(|s| s.is_test() && !used.contains(s.path)) {
        Some(side) => Err(format!(
            "{} tells about test rows what no public file tells about training rows",
            side.path
        )),
        None => Ok(()),
    })
}

fn save(side: &SideTable<'_>, wanted: impl Fn(&Option<Owner>) -> bool, out: &Path) -> Result<(), GymError> {
    let mut writer = side.table.writer();
    writer.header();
    (0..side.table.len())
        .filter(|row| wanted(&side.owners[*row]))
        .for_each(|row| writer.copy(row));
    writer.save(&out.join(side.path))
}

/// A table of the same interactions as the training rows: those held back go.
fn write_without_pairs(
    files: &RowFiles<'_>,
    path: &str,
    table: &Table,
    columns: (usize, usize),
    out: &Path,
) -> Result<(), GymError> {
    let mut hidden: HashSet<(String, String)> = HashSet::new();
    if let Some((id, item)) = files
        .pair
        .and_then(|(id, item)| Some((files.train.position(id)?, files.train.position(item)?)))
    {
        let cell = |row, column| files.train.value(row, column).unwrap_or_default().into_owned();
        hidden.extend(
            (0..files.train.len())
                .filter(|row| files.held[*row])
                .map(|row| (cell(row, id), cell(row, item))),
        );
    }
    let cell = |row, column| table.value(row, column).unwrap_or_default().into_owned();
    let mut writer = table.writer();
    writer.header();
    (0..table.len())
        .filter(|row| !hidden.contains(&(cell(*row, columns.0), cell(*row, columns.1))))
        .for_each(|row| writer.copy(row));
    writer.save(&out.join(path))
}

/// A table of training and test rows together: test rows go, and what is empty for all of them becomes empty for held-out rows.
fn write_common(side: &SideTable<'_>, secret: &[String], out: &Path) -> Result<(), GymError> {
    let width = side.table.columns().len();
    let of_test: Vec<usize> = (0..side.table.len())
        .filter(|row| side.owners[*row] == Some(Owner::Test))
        .collect();
    let empty = |row: &usize, c: usize| side.table.value(*row, c).is_none_or(|v| v.trim().is_empty());
    let hidden: Vec<bool> = (0..width)
        .map(|c| {
            secret.contains(&side.table.columns()[c]) || !of_test.is_empty() && of_test.iter().all(|row| empty(row, c))
        })
        .collect();
    let mut writer = side.table.writer();
    writer.header();
    for row in 0..side.table.len() {
        match side.owners[row] {
            Some(Owner::Test) => {}
            Some(Owner::Held) if hidden.contains(&true) => writer.row((0..width).map(|c| {
                if hidden[c] {
                    Cell::Text("".into())
                } else {
                    Cell::Field(&side.table, row, c)
                }
            })),
            _ => writer.copy(row),
        }
    }
    writer.save(&out.join(side.path))
}

/// Puts a file of the package into the validation package; a second name for the same bytes where the file system can.
pub fn link_file(from: &Path, to: &Path) -> Result<(), GymError> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(io("create", parent))?;
    }
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).map_err(io("copy", from))?;
    }
    Ok(())
}
