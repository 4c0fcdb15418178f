//! What can go wrong.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, LmError>;

/// A fault of loading or generating, as it is told to the user.
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of the model is not what it should be.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the key or tensor.
        problem: String,
    },
    /// The model needs a tensor that the checkpoint lacks.
    #[error("the checkpoint has no tensor '{name}', which {model_type} needs")]
    MissingTensor {
        /// Name of the tensor.
        name: String,
        /// Architecture.
        model_type: String,
    },
    /// A tensor has another shape than the configuration says.
    #[error("the tensor '{name}' has the shape {found:?}, the configuration says {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Shape in the checkpoint.
        found: Vec<i64>,
        /// Shape that follows from the configuration.
        expected: Vec<i64>,
    },
    /// A model, option or feature that is not known here.
    #[error("{0}")]
    Unsupported(String),
    /// There is too little memory.
    #[error("{what} needs {needed} bytes of memory on {device}, {available} are free; {advice}")]
    Memory {
        /// What needs it.
        what: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are free.
        available: u64,
        /// Device.
        device: String,
        /// What to do.
        advice: String,
    },
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    /// A model cannot be downloaded.
    #[error("the model cannot be downloaded: {0}")]
    Download(String),
    /// A text cannot be turned into tokens, or tokens into a text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// A chat template cannot be read or rendered.
    #[error("the chat template {name} failed: {problem}")]
    Template {
        /// Where it comes from.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The model computed something that cannot be.
    #[error("the model failed: {0}")]
    Model(String),
    /// Replacing the weights failed when some were replaced already.
    #[error(
        "the weights of the model are mixed, because replacing them failed in the middle: {0}; nothing is generated until they are \
         replaced whole, or the model is loaded again"
    )]
    MixedWeights(String),
    /// A prompt does not fit.
    #[error("{0}")]
    TooLong(String),
    /// A request cannot be served as it was asked.
    #[error("{0}")]
    Request(String),
    /// Too many requests wait; a later try may succeed.
    #[error("{0}")]
    Busy(String),
    /// The engine runs no more.
    #[error("{0}")]
    Stopped(String),
}
