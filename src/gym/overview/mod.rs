//! What a task's public files hold, in bounded words: sizes, rows, columns with types and samples, pictures, sounds, folders.
//! It is made once for a package and kept in `gym.overview_files` and `gym.overview_columns`; prompts state it.
//!
//! Only the folder that candidates see is read: regular files, no links, a bounded part of each. Whatever a file holds, it
//! costs bounded time and ends as bounded text.

mod array;
mod audio;
mod columns;
mod image;
mod json;
mod media;
mod parquet;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;

use serde::Serialize;

use crate::gym::error::GymError;
use read::Reader;

/// Files and folders that are described one by one.
const MOST_FILES: usize = 80;
/// Columns of a table that are described: the first ones, and the last ones, where targets often are.
const FIRST_COLUMNS: usize = 50;
const LAST_COLUMNS: usize = 10;
/// Characters of one sample value, of a name, and of a text beside them.
const SAMPLE_CHARS: usize = 40;
const NAME_CHARS: usize = 80;
const SUMMARY_CHARS: usize = 400;

/// The public files of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DataOverview {
    /// Files and folders, the most important first. The first is the public folder itself.
    pub files: Vec<FileOverview>,
    /// Files and folders that are not described.
    pub files_left_out: i64,
    /// Kinds of data that are there: table, json, parquet, image, audio, array, text, other.
    pub kinds: Vec<String>,
}

/// A file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileOverview {
    /// Path below the public folder; empty for the folder itself, with a slash at the end for one in it.
    pub path: String,
    /// folder, table, json, parquet, image, audio, array, text or other.
    pub kind: String,
    /// Ending of the name, such as csv.
    pub format: String,
    /// Size; of a folder, that of the files that lie right in it.
    pub bytes: i64,
    /// Files right in a folder.
    pub files: Option<i64>,
    /// Rows of a table.
    pub rows: Option<i64>,
    /// The rows were counted to the end.
    pub rows_exact: bool,
    /// Columns of a table.
    pub columns: Option<i64>,
    /// Width in pixels.
    pub width: Option<i64>,
    /// Height in pixels.
    pub height: Option<i64>,
    /// Channels of a picture or a sound.
    pub channels: Option<i64>,
    /// Length of a sound.
    pub seconds: Option<f64>,
    /// Samples of a sound in a second.
    pub sample_rate: Option<i64>,
    /// What else there is to say.
    pub summary: Option<String>,
    /// What was not read, and why.
    pub note: Option<String>,
    /// Columns that are described.
    pub column_facts: Vec<ColumnOverview>,
    /// Columns that are not described.
    pub columns_left_out: i64,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ColumnOverview {
    /// Name.
    pub name: String,
    /// integer, number, boolean, date, text, list, object, empty, or the type that the file declares.
    #[serde(rename = "type")]
    pub kind: String,
    /// Share of missing values.
    pub missing: Option<f64>,
    /// Different values; `None` for too many to count.
    pub distinct: Option<i64>,
    /// Least value of numbers, and of dates that begin with the year.
    pub minimum: Option<String>,
    /// Greatest value.
    pub maximum: Option<String>,
    /// Some values.
    pub samples: Vec<String>,
}

impl DataOverview {
    /// Describes the files in a public folder.
    ///
    /// # Errors
    /// When the folder itself cannot be listed. A file that cannot be read is an entry that says so.
    pub fn of(public_dir: &Path) -> Result<Self, GymError> {
        let tree = walk::Tree::of(public_dir)?;
        let mut reader = Reader::new(public_dir);
        let kinds = tree.kinds();
        let (files, files_left_out) = tree.describe(&mut reader);
        Ok(Self {
            files,
            files_left_out,
            kinds,
        })
    }
}

/// Kind of a file by the ending of its name.
fn kind_of(format: &str) -> &'static str {
    match format.trim_end_matches(".gz") {
        "csv" | "tsv" | "tab" => "table",
        "json" | "jsonl" | "ndjson" | "geojson" => "json",
        "parquet" | "pq" => "parquet",
        "png" | "jpg" | "jpeg" | "gif" | "bmp" | "webp" | "tif" | "tiff" | "dcm" => "image",
        "wav" | "flac" | "aif" | "aiff" | "mp3" | "ogg" | "m4a" | "opus" => "audio",
        "npy" | "npz" | "h5" | "hdf5" | "nc" | "mat" | "zarr" => "array",
        "txt" | "md" | "xml" | "html" | "yaml" | "yml" | "rst" | "fasta" | "fa" | "smi" | "sdf" | "pdb" => "text",
        _ => "other",
    }
}

/// A text from a file as one short line of a prompt: no control characters, no line ends, nothing that closes a block.
fn line(text: &str, chars: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut out = String::new();
    let mut length = 0;
    for word in words.filter(|word| !word.is_empty()) {
        if length > 0 {
            out.push(' ');
            length += 1;
        }
        for c in word.chars() {
            if length >= chars {
                out.push('…');
                return out;
            }
            out.push(if c == '`' { '\'' } else { c });
            length += 1;
        }
    }
    out
}
