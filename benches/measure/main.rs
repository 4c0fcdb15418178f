//! Every figure of docs/performance.md that is not the sandbox's: `cargo bench --bench measure [-- PART …]`.
//!
//! The parts are store, selection, harness, prompts, memory and analytics; without a name all of them run. `CLADE_MEASURE_DIR` is the
//! folder of the stores that are made (a temporary one by default, removed at the end); `CLADE_TEST_PYTHON` is the
//! interpreter with duckdb and deltalake that analytics compares with.

mod analytics;
mod fixture;
mod harness;
mod history;
#[path = "../../tests/engine/instant.rs"]
mod instant;
mod machine;
mod memory;
mod prompts;
mod selection;
mod store;
#[path = "../../tests/engine/verbose.rs"]
mod verbose;

use std::path::PathBuf;

use anyhow::{Result, bail};

use self::machine::{Report, state};

const PARTS: [&str; 6] = ["store", "selection", "harness", "prompts", "memory", "analytics"];

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds --bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let [part, rest @ ..] = arguments.as_slice()
        && part == memory::CHILD
    {
        return memory::child(rest).await;
    }
    if let Some(unknown) = arguments.iter().find(|argument| !PARTS.contains(&argument.as_str())) {
        bail!("there is no part '{unknown}'; the parts are {}", PARTS.join(", "));
    }
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == part);
    let temporary;
    let folder = match std::env::var_os("CLADE_MEASURE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => {
            temporary = tempfile::Builder::new().prefix("clade-measure-").tempdir()?;
            temporary.path().to_owned()
        }
    };
    std::fs::create_dir_all(&folder)?;
    let mut report = Report::new();
    report.line(&format!("machine: {}", state()?))?;
    if wanted("store") {
        store::measure(&mut report, &folder).await?;
    }
    if wanted("selection") {
        selection::measure(&mut report, &folder).await?;
    }
    if wanted("harness") {
        harness::measure(&mut report, &folder).await?;
    }
    if wanted("prompts") {
        prompts::measure(&mut report, &folder).await?;
    }
    if wanted("memory") {
        memory::measure(&mut report, &folder).await?;
    }
    if wanted("analytics") {
        analytics::measure(&mut report, &folder).await?;
    }
    report.line(&format!("machine at the end: {}", state()?))
}
