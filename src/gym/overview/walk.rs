//! The tree of public files: what is described one by one, and what is summed up by folder.

use std::collections::BTreeMap;
use std::path::Path;

use super::read::Reader;
use super::{
    FileOverview, MOST_FILES, NAME_CHARS, SUMMARY_CHARS, array, image, json, kind_of, line, media, parquet, table,
};
use super::{audio, read};
use crate::gym::error::{GymError, io};

/// Entries that are looked at.
const MOST_ENTRIES: usize = 100_000;
const MOST_DEPTH: usize = 16;
/// Files of one ending in one folder that are still described one by one.
const LISTED: usize = 6;
/// Of more tables than that, the first are described.
const LISTED_OF_MANY: usize = 2;
/// Names that a folder's summary gives as examples.
const EXAMPLES: usize = 2;
/// Endings that a folder's summary names.
const ENDINGS: usize = 8;

/// The description is in the prompt anyway.
const DESCRIPTION: &str = "description.txt";

#[derive(Debug)]
struct Found {
    name: String,
    format: String,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Folder {
    /// Path with a slash at its end; empty for the root.
    path: String,
    files: Vec<Found>,
    /// Links and special files.
    skipped: usize,
}

/// Folders with their files, sorted by path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    folders: Vec<Folder>,
    seen: usize,
    /// Entries that were not looked at.
    left_out: bool,
}

impl Tree {
    pub(super) fn of(root: &Path) -> Result<Self, GymError> {
        let mut tree = Self::default();
        tree.enter(root, String::new(), 0).map_err(io("read", root))?;
        Ok(tree)
    }

    fn enter(&mut self, dir: &Path, path: String, depth: usize) -> std::io::Result<()> {
        let mut folder = Folder {
            path,
            ..Folder::default()
        };
        let mut below = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            self.seen += 1;
            if self.seen > MOST_ENTRIES {
                self.left_out = true;
                break;
            }
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                below.push(name);
            } else if kind.is_file() {
                folder.files.push(Found {
                    format: format_of(&name),
                    bytes: entry.metadata()?.len(),
                    name,
                });
            } else {
                folder.skipped += 1;
            }
        }
        folder.files.sort_by(|a, b| a.name.cmp(&b.name));
        below.sort();
        let path = folder.path.clone();
        self.folders.push(folder);
        for name in below {
            if depth + 1 >= MOST_DEPTH {
                self.left_out = true;
                continue;
            }
            // A folder that cannot be opened is left out; the rest is described.
            if let Err(error) = self.enter(&dir.join(&name), format!("{path}{name}/"), depth + 1) {
                tracing::warn!(folder = %dir.join(&name).display(), %error, "left out of the data overview");
                self.left_out = true;
            }
        }
        Ok(())
    }

    /// Kinds of all files, sorted.
    pub(super) fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self
            .folders
            .iter()
            .flat_map(|folder| &folder.files)
            .filter(|file| file.name != DESCRIPTION)
            .map(|file| kind_of(&file.format).to_owned())
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Describes the tree; also gives how many files and folders had no place.
    pub(super) fn describe(&self, reader: &mut Reader) -> (Vec<FileOverview>, i64) {
        let mut out = Vec::new();
        let mut left_out = 0;
        for folder in &self.folders {
            if out.len() >= MOST_FILES {
                left_out += 1 + folder.files.len() as i64;
                continue;
            }
            // A folder that only holds folders says nothing.
            if folder.path.is_empty() || !folder.files.is_empty() || folder.skipped > 0 {
                out.push(self.folder(folder, reader));
            }
            for (path, file) in folder.listed() {
                if out.len() >= MOST_FILES {
                    left_out += 1;
                    continue;
                }
                out.push(describe(&path, file, reader));
            }
        }
        (out, left_out)
    }

    fn folder(&self, folder: &Folder, reader: &mut Reader) -> FileOverview {
        let mut summary = folder.endings();
        for kind in ["image", "audio"] {
            summary.extend(media::of_folder(&folder.path, folder.files_of(kind), kind, reader));
        }
        let mut notes = Vec::new();
        if folder.skipped > 0 {
            notes.push(format!("{} links or special files are not read", folder.skipped));
        }
        if folder.path.is_empty() && self.left_out {
            notes.push("there are more files than were looked at".to_owned());
        }
        FileOverview {
            path: line(&folder.path, NAME_CHARS),
            kind: "folder".to_owned(),
            bytes: folder.files.iter().map(|file| file.bytes as i64).sum(),
            files: Some(folder.files.len() as i64),
            summary: (!summary.is_empty()).then(|| line(&summary.join("; "), SUMMARY_CHARS)),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            ..FileOverview::default()
        }
    }
}

impl Folder {
    fn groups(&self) -> BTreeMap<&str, Vec<&Found>> {
        let mut groups: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
        for file in &self.files {
            groups.entry(&file.format).or_default().push(file);
        }
        groups
    }

    /// How many files of each ending there are, where they are too many to list.
    fn endings(&self) -> Vec<String> {
        let groups = self.groups();
        let many: Vec<_> = groups.iter().filter(|(_, files)| files.len() > LISTED).collect();
        many.iter()
            .take(ENDINGS)
            .map(|(format, files)| {
                let names: Vec<&str> = files.iter().take(EXAMPLES).map(|file| file.name.as_str()).collect();
                let ending = if format.is_empty() {
                    "without an ending".to_owned()
                } else {
                    format!(".{format}")
                };
                format!("{} {ending} (such as {})", files.len(), names.join(", "))
            })
            .chain((many.len() > ENDINGS).then(|| format!("{} more endings", many.len() - ENDINGS)))
            .collect()
    }

    /// Files that are described one by one, the usual tables of a task first.
    fn listed(&self) -> Vec<(String, &Found)> {
        let mut listed: Vec<&Found> = self
            .groups()
            .into_values()
            .flat_map(|files| {
                let most = match files.len() {
                    0..=LISTED => files.len(),
                    _ if matches!(kind_of(&files[0].format), "table" | "json" | "parquet") => LISTED_OF_MANY,
                    _ => 0,
                };
                files.into_iter().take(most)
            })
            .filter(|file| !(self.path.is_empty() && file.name == DESCRIPTION))
            .collect();
        listed.sort_by_key(|file| (importance(&file.name), file.name.clone()));
        listed
            .into_iter()
            .map(|file| (format!("{}{}", self.path, file.name), file))
            .collect()
    }

    fn files_of(&self, kind: &str) -> Vec<(&str, &str)> {
        self.files
            .iter()
            .filter(|file| kind_of(&file.format) == kind)
            .map(|file| (file.name.as_str(), file.format.as_str()))
            .collect()
    }
}

fn importance(name: &str) -> usize {
    ["train", "test", "sample_submission"]
        .iter()
        .position(|word| name.starts_with(word))
        .unwrap_or(3)
}

/// Ending of a name in small letters; `csv.gz` for a packed table.
fn format_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let (stem, packed) = match lower.strip_suffix(".gz") {
        Some(stem) => (stem, ".gz"),
        None => (lower.as_str(), ""),
    };
    match stem.rsplit_once('.') {
        Some((before, ending)) if !before.is_empty() && ending.len() <= 12 => format!("{}{packed}", line(ending, 12)),
        _ if packed.is_empty() => String::new(),
        _ => "gz".to_owned(),
    }
}

/// Describes one file.
fn describe(path: &str, file: &Found, reader: &mut Reader) -> FileOverview {
    let kind = kind_of(&file.format);
    let mut out = FileOverview {
        path: line(path, NAME_CHARS),
        kind: kind.to_owned(),
        format: if file.format.is_empty() {
            "no ending".to_owned()
        } else {
            file.format.clone()
        },
        bytes: i64::try_from(file.bytes).unwrap_or(i64::MAX),
        ..FileOverview::default()
    };
    let result = match kind {
        "table" => table::describe(path, &mut out, reader),
        "json" => json::describe(path, &mut out, reader),
        "parquet" => parquet::describe(path, &mut out, reader),
        "image" => image::describe(path, &mut out, reader),
        "audio" => audio::describe(path, &mut out, reader),
        "array" if file.format == "npy" => array::describe(path, &mut out, reader),
        "text" => text(path, &mut out, reader),
        _ => Ok(()),
    };
    if let Err(reason) = result {
        out.note = Some(line(&reason, SUMMARY_CHARS));
    }
    out
}

/// First lines of a text.
fn text(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let read::Part { bytes, is_whole } = reader.header(path)?;
    let text = String::from_utf8_lossy(&bytes);
    if is_whole {
        out.summary = Some(format!(
            "{} lines, beginning: {}",
            text.lines().count(),
            line(&text, 160)
        ));
    } else {
        out.summary = Some(format!("beginning: {}", line(&text, 160)));
    }
    Ok(())
}
