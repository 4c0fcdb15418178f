//! The library's C interface: see `clade-lm-api` for the other side.

mod events;
mod handles;
mod methods;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clade_lm_api::{ABI, Bytes, Fault, FaultKind, Sink, Table};
use serde_json::{Value as Json, json};

use self::events::Events;
use crate::error::LmError;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The table, which nobody changes.
struct Shared(Table);

// SAFETY: the pointer in the table is to static text, and its functions may be called from any thread.
unsafe impl Sync for Shared {}

static TABLE: Shared = Shared(Table {
    abi: ABI,
    version: VERSION.as_ptr(),
    version_len: VERSION.len(),
    call,
    release,
});

/// The table of this library.
#[unsafe(no_mangle)]
pub extern "C" fn clade_lm_table() -> *const Table {
    &raw const TABLE.0
}

extern "C" fn call(
    method: *const u8,
    method_len: usize,
    body: *const u8,
    body_len: usize,
    sink: Option<Sink>,
    context: *mut c_void,
) -> Bytes {
    // SAFETY: the caller lends both for the time of the call.
    let (method, body) = unsafe {
        (
            std::slice::from_raw_parts(method, method_len),
            std::slice::from_raw_parts(body, body_len),
        )
    };
    let events = sink.map(|sink| Events::new(sink, context));
    let done = catch_unwind(AssertUnwindSafe(|| methods::call(method, body, events)));
    let answer = match done {
        Ok(Ok(value)) => json!({"ok": value}),
        Ok(Err(fault)) => json!({"error": fault}),
        Err(panic) => json!({"error": Fault {
            kind: FaultKind::Internal,
            message: format!("the model library failed: {}", said(panic.as_ref())),
        }}),
    };
    given(&answer)
}

/// Bytes for the caller.
fn given(answer: &Json) -> Bytes {
    let bytes = answer.to_string().into_bytes().into_boxed_slice();
    let len = bytes.len();
    Bytes {
        data: Box::into_raw(bytes).cast(),
        len,
    }
}

extern "C" fn release(bytes: Bytes) {
    if !bytes.data.is_null() {
        // SAFETY: `given` made them as a boxed slice of this length; the caller gives them back once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.len)) });
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it did not say why")
        .to_owned()
}

/// A fault as it is told.
fn fault(error: &LmError) -> Fault {
    let kind = match error {
        LmError::Request(_) | LmError::Template { .. } => FaultKind::Request,
        LmError::TooLong(_) => FaultKind::TooLong,
        LmError::Memory { .. } => FaultKind::Memory,
        LmError::Torch(_) | LmError::Model(_) => FaultKind::Internal,
        _ => FaultKind::Model,
    };
    Fault {
        kind,
        message: error.to_string(),
    }
}
