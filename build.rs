//! Lists the files under `sql/` so that the library embeds them: a new view or policy is a new file.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=sql");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("sql");
    let mut code = String::from("static VIEW_FILES: &[(&str, &str, &str)] = &[\n");
    for schema in sorted(&root.join("views"))? {
        for file in sorted(&schema)? {
            writeln!(
                code,
                "    ({:?}, {:?}, include_str!({:?})),",
                stem(&schema)?,
                stem(&file)?,
                file
            )?;
        }
    }
    code.push_str("];\nstatic POLICY_FILES: &[(&str, &str)] = &[\n");
    for file in sorted(&root.join("policies"))? {
        writeln!(code, "    ({:?}, include_str!({:?})),", stem(&file)?, file)?;
    }
    code.push_str("];\n");
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("sql_files.rs"), code)?;
    Ok(())
}

/// What a folder holds, by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

/// The name of a file without `.sql`.
fn stem(path: &Path) -> Result<&str, Box<dyn Error>> {
    path.file_stem()
        .and_then(|stem| stem.to_str())
        .ok_or_else(|| format!("{path:?} has no plain name").into())
}
