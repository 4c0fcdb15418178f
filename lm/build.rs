//! Lets the tests of this crate find libtorch without variables of the environment.

fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if let Ok(libtorch) = std::env::var("LIBTORCH") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libtorch}/lib");
    }
}
