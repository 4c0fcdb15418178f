//! What an import is doing, for a person who waits for it.

use std::fmt;
use std::sync::Arc;

/// Takes a line at the beginning of every part of an import that may take long.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Listener>>);

type Listener = dyn Fn(&str) + Send + Sync;

impl Progress {
    /// Lines go to a function.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Says what begins.
    pub(crate) fn say(&self, line: &str) {
        if let Some(listener) = &self.0 {
            listener(line);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}
