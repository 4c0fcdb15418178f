//! Clade command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The sandbox starts this program again as its helper, which must stay single-threaded and open nothing else.
    if clade::sandbox::is_helper() {
        return clade::sandbox::helper_main();
    }
    clade::cli::main()
}
