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
    /// A request cannot be served as it was asked.
    #[error("{0}")]
    Request(String),
}
