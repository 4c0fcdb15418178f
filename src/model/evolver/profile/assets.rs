//! Data beside the tables: pictures and series, found by a bounded look at the folder.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;

/// Most folder entries looked at.
const MAX_ENTRIES: usize = 20_000;
/// Fewest files that make a set.
const LEAST_FILES: usize = 10;
/// Longest header line read from a series file.
const MAX_HEADER: u64 = 1 << 20;

/// Pictures, one a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Images {
    /// File name ending, such as `.png`.
    pub(crate) suffix: String,
    /// Column whose values name the files.
    pub(crate) column: String,
    /// True when the values hold the ending too.
    pub(crate) with_suffix: bool,
    /// Width and height of the first picture, when its header could be read.
    pub(crate) size: Option<(u32, u32)>,
}

/// Series, one a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Series {
    /// Long tables: many rows for each id.
    Tables {
        /// File names.
        files: Vec<String>,
        /// Column that orders the steps, when there is one.
        order: Option<String>,
        /// Measured columns.
        channels: Vec<String>,
    },
    /// One array file for each id.
    Arrays {
        /// File name ending: `.npy` or `.csv`.
        suffix: String,
        /// Column whose values name the files.
        column: String,
        /// True when the values hold the ending too.
        with_suffix: bool,
    },
}

/// Names of all files below a folder, relative to it, within bounds and in order.
pub(crate) fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(name.to_owned());
            }
            if found.len() + folders.len() > MAX_ENTRIES {
                found.sort();
                return found;
            }
        }
    }
    found.sort();
    found
}

/// The pictures that the values of one of these columns name.
pub(crate) fn images(root: &Path, files: &[String], columns: &[(&str, Option<&str>)]) -> Option<Images> {
    for suffix in [".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"] {
        let Some((first, column, with_suffix)) = named_files(files, suffix, columns) else {
            continue;
        };
        return Some(Images {
            suffix: suffix.to_owned(),
            column,
            with_suffix,
            size: png_size(&root.join(first)),
        });
    }
    None
}

/// The series of the task: array files that a column names, or long tables with the id column.
pub(crate) fn series(
    root: &Path,
    files: &[String],
    columns: &[(&str, Option<&str>)],
    id: &str,
    known: &[&str],
) -> Option<Series> {
    for suffix in [".npy", ".csv"] {
        if let Some((_, column, with_suffix)) = named_files(files, suffix, columns) {
            return Some(Series::Arrays {
                suffix: suffix.to_owned(),
                column,
                with_suffix,
            });
        }
    }
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    for name in files {
        let is_table = name.ends_with(".csv") || name.ends_with(".csv.gz");
        if !is_table || name.contains('/') || known.contains(&name.as_str()) {
            continue;
        }
        let Some(header) = header(&root.join(name)) else {
            continue;
        };
        if header.iter().any(|column| column == id) && header.len() >= 2 {
            tables.push((name.clone(), header));
        }
    }
    let (_, header) = tables.first()?.clone();
    tables.retain(|(_, other)| *other == header);
    let order = header
        .iter()
        .find(|column| {
            let column = column.to_lowercase();
            ["t", "time", "step", "timestep", "timestamp", "index", "seq", "position"].contains(&column.as_str())
        })
        .cloned();
    let channels: Vec<_> = header
        .into_iter()
        .filter(|column| column != id && Some(column) != order.as_ref())
        .collect();
    let has_parts = tables.len() >= 2 && !channels.is_empty();
    has_parts.then(|| Series::Tables {
        files: tables.into_iter().map(|(name, _)| name).collect(),
        order,
        channels,
    })
}

fn named_files(files: &[String], suffix: &str, columns: &[(&str, Option<&str>)]) -> Option<(String, String, bool)> {
    let named: Vec<_> = files.iter().filter(|name| name.ends_with(suffix)).collect();
    if named.len() < LEAST_FILES {
        return None;
    }
    for (column, value) in columns {
        let Some(value) = value else { continue };
        let value_name = value.rsplit('/').next().unwrap_or(value);
        for name in &named {
            let file = name.rsplit('/').next().unwrap_or(name);
            if file == value_name || file.strip_suffix(suffix) == Some(value_name) {
                return Some(((*name).clone(), (*column).to_owned(), file == value_name));
            }
        }
    }
    None
}

fn header(path: &Path) -> Option<Vec<String>> {
    let file = fs::File::open(path).ok()?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut line = String::new();
    BufReader::new(reader.take(MAX_HEADER)).read_line(&mut line).ok()?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(line.as_bytes());
    let record = reader.records().next()?.ok()?;
    Some(record.iter().map(str::to_owned).collect())
}

fn png_size(path: &Path) -> Option<(u32, u32)> {
    let mut head = [0_u8; 24];
    fs::File::open(path).ok()?.read_exact(&mut head).ok()?;
    if !head.starts_with(b"\x89PNG") {
        return None;
    }
    let number = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((number(16)?, number(20)?))
}
