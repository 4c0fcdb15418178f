//! Clade command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: the sandbox helper must have one thread.
    if clade::sandbox::is_helper() {
        return clade::sandbox::helper_main();
    }
    ExitCode::SUCCESS
}
