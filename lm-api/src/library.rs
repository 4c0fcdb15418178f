//! The library as a caller sees it.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, Fault, Result};
use crate::messages::Method;
use crate::table::{ABI, ENTRY, Table};

/// Version of the messages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// File name of the library.
const FILE: &str = "libclade_lm.so";

/// Variable that names the library in the place of the usual file.
const VARIABLE: &str = "CLADE_LM_LIBRARY";

/// A loaded library. It stays loaded until the process ends: libtorch has threads and handlers of its own.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    table: &'static Table,
}

// SAFETY: the table is never written after it is made, and its functions may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// An answer.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Ok(T),
    Error(Fault),
}

/// Gets events. It is boxed twice, because a pointer to a trait object is too wide for C.
type Receiver = Box<dyn FnMut(&[u8]) + Send>;

impl Library {
    /// Where it is looked for: `CLADE_LM_LIBRARY`, else beside the program.
    pub fn usual_path() -> PathBuf {
        if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return PathBuf::from(path);
        }
        let program = std::env::current_exe().unwrap_or_default();
        let folder = program.parent().map(Path::to_owned).unwrap_or_default();
        // Programs of the tests lie in a folder below the one of the library.
        let beside = [folder.join(FILE), folder.join("..").join(FILE)];
        let [first, _] = &beside;
        beside.iter().find(|path| path.is_file()).unwrap_or(first).clone()
    }

    /// Loads it.
    ///
    /// # Errors
    /// When there is none, it cannot be loaded, or it is of another build.
    pub fn load(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Err(ApiError::Missing { path: path.to_owned() });
        }
        let failed = |source| ApiError::Load {
            path: path.to_owned(),
            source,
        };
        // SAFETY: the file is ours by its name; that its symbol is what it seems is checked by its version below.
        let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
        // SAFETY: the entry of every version takes nothing and gives a pointer to a table that begins with its version.
        let entry = unsafe { library.get::<extern "C" fn() -> *const Table>(ENTRY) }.map_err(failed)?;
        let table = entry();
        let expected = format!("{ABI}, {VERSION}");
        let wrong = |found: String| ApiError::Version {
            path: path.to_owned(),
            found,
            expected: expected.clone(),
        };
        // SAFETY: the library is not unloaded, so the table lives as long as the process; it is checked for null.
        let table: &'static Table = unsafe { table.as_ref() }.ok_or_else(|| wrong("none".to_owned()))?;
        if table.abi != ABI {
            return Err(wrong(table.abi.to_string()));
        }
        // SAFETY: a table of this version has the text of its package version there, which is static.
        let version = unsafe { std::slice::from_raw_parts(table.version, table.version_len) };
        if version != VERSION.as_bytes() {
            return Err(wrong(format!("{ABI}, {}", String::from_utf8_lossy(version))));
        }
        std::mem::forget(library);
        Ok(Self {
            path: path.to_owned(),
            table,
        })
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// What the library says, or a message that makes no sense.
    pub fn call<M: Method>(&self, request: &M) -> Result<M::Answer> {
        self.send(M::NAME, request, None)
    }

    /// Calls a method whose events go to `receiver`, on a thread of the library, until it is dropped after the last one.
    ///
    /// # Errors
    /// As [`Library::call`]; then no event comes.
    pub fn stream<M: Method>(&self, request: &M, receiver: impl FnMut(&[u8]) + Send + 'static) -> Result<M::Answer> {
        self.send(M::NAME, request, Some(Box::new(receiver)))
    }

    fn send<T: DeserializeOwned>(&self, method: &str, body: &impl Serialize, receiver: Option<Receiver>) -> Result<T> {
        let body = serde_json::to_vec(body)?;
        let sink = receiver.is_some().then_some(deliver as crate::table::Sink);
        let context = receiver.map_or(std::ptr::null_mut(), |receiver| {
            Box::into_raw(Box::new(receiver)).cast::<c_void>()
        });
        let answer = (self.table.call)(method.as_ptr(), method.len(), body.as_ptr(), body.len(), sink, context);
        let read = if answer.data.is_null() {
            serde_json::from_slice::<Answer<T>>(b"")
        } else {
            // SAFETY: the library gave these bytes, which live until they are released.
            serde_json::from_slice(unsafe { std::slice::from_raw_parts(answer.data, answer.len) })
        };
        (self.table.release)(answer);
        match read {
            Ok(Answer::Ok(value)) => Ok(value),
            Ok(Answer::Error(fault)) => {
                // A call that fails sends no event, so nobody else frees its receiver.
                if !context.is_null() {
                    // SAFETY: it was made by `Box::into_raw` above and is used by nobody.
                    drop(unsafe { Box::from_raw(context.cast::<Receiver>()) });
                }
                Err(fault.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Gives an event to its receiver, and drops the receiver after the last one.
extern "C" fn deliver(context: *mut c_void, event: *const u8, len: usize) {
    let receiver = context.cast::<Receiver>();
    if event.is_null() {
        // SAFETY: `send` made it by `Box::into_raw`; the library calls with null once and never again.
        drop(unsafe { Box::from_raw(receiver) });
        return;
    }
    // SAFETY: the library lends these bytes for the time of the call, and calls from one thread at a time.
    let (receiver, event) = unsafe { (&mut *receiver, std::slice::from_raw_parts(event, len)) };
    // A panic must not pass through C; the hook has told of it.
    let _ = catch_unwind(AssertUnwindSafe(|| receiver(event)));
}
