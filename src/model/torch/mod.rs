//! Weights that run in this process. libtorch is in a library of its own, which is loaded when the first such model is used.

mod client;
mod library;
mod loaded;
mod needs;
mod tokenizer;

pub use self::client::Torch;
pub use self::library::{NoLibrary, library};
pub use self::loaded::{Answers, LoadError, LoadedModel, load};
pub use self::tokenizer::LocalTokenizer;
