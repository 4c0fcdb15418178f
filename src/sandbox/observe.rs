//! Looking at a program's output while it runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One of a program's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl LogStream {
    /// Both, in the order in which back ends keep them.
    pub const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Name as shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// Position in [`LogStream::BOTH`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }
}

/// Output as it comes.
#[derive(Debug, Clone, Copy)]
pub struct LogPart<'a> {
    /// Which output.
    pub stream: LogStream,
    /// Bytes that the program wrote before these and that are not shown: it writes faster than anybody can follow.
    pub skipped: u64,
    /// What it wrote.
    pub bytes: &'a [u8],
}

/// Gets a program's output while it runs. It is called in the path of the output, so it must be quick and must not wait.
#[derive(Clone)]
pub struct LogObserver(Arc<dyn Fn(LogPart<'_>) + Send + Sync>);

impl LogObserver {
    /// An observer that calls a function.
    pub fn new(see: impl Fn(LogPart<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }

    /// Shows output to it.
    pub(crate) fn see(&self, part: LogPart<'_>) {
        (self.0)(part);
    }
}

impl fmt::Debug for LogObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogObserver")
    }
}
