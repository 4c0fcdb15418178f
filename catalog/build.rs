//! Embeds the table specs (`tables/<schema>/<table>.toml`) and the migrations (`migrations/NNNN_*.sql`), so that adding
//! a table or a migration is adding one file.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut out = String::from("pub(crate) const SPECS: &[(&str, &str, &str)] = &[\n");
    for schema in entries(&root.join("tables"))? {
        for file in entries(&schema)? {
            if file.extension().is_some_and(|e| e == "toml") {
                writeln!(
                    out,
                    "({:?}, {:?}, include_str!({:?})),",
                    stem(&schema)?,
                    stem(&file)?,
                    file
                )?;
            }
        }
    }
    out.push_str("];\npub(crate) const MIGRATIONS: &[(&str, &str)] = &[\n");
    for file in entries(&root.join("migrations"))? {
        if file.extension().is_some_and(|e| e == "sql") {
            writeln!(out, "({:?}, include_str!({:?})),", stem(&file)?, file)?;
        }
    }
    out.push_str("];\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs"), out)?;
    Ok(())
}

/// Entries of a folder in name order; the folder is watched for new files.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut found = fs::read_dir(dir)?
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> Result<&str, Box<dyn Error>> {
    path.file_stem()
        .and_then(|s| s.to_str())
        .ok_or_else(|| format!("{}: not a UTF-8 name", path.display()).into())
}
