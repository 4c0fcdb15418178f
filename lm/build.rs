//! Lets the tests of this crate find libtorch without variables of the environment, and finds the threads that libtorch works with.

use std::env;
use std::fs;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    println!("cargo::rustc-check-cfg=cfg(cpu_kernels)");
    let Ok(libtorch) = env::var("LIBTORCH") else { return };
    let folder = Path::new(&libtorch).join("lib");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    // Our kernels run on the threads of libtorch's own OpenMP: a second set of threads would fight with it for the cores. Where there
    // is none, or another processor, libtorch does their work.
    let is_x86 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "x86_64");
    if let Some(openmp) = openmp(&folder).filter(|_| is_x86) {
        println!("cargo::rustc-cfg=cpu_kernels");
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-arg=-l:{openmp}");
    }
}

/// The file of GNU's OpenMP beside libtorch. Wheels and archives name it differently.
fn openmp(folder: &Path) -> Option<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("libgomp") && name.contains(".so"))
        .collect();
    names.sort();
    names.into_iter().next()
}
