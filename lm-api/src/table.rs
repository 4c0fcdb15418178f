//! The C interface: one function with JSON in and out.

use std::ffi::c_void;

/// Version of the interface. Messages are of the same package version on both sides.
pub const ABI: u32 = 1;

/// Name of the symbol that gives the [`Table`].
pub const ENTRY: &[u8] = b"clade_lm_table\0";

/// Bytes that belong to the library.
#[repr(C)]
#[derive(Debug)]
pub struct Bytes {
    /// First byte.
    pub data: *mut u8,
    /// Number of bytes.
    pub len: usize,
}

/// Gets the events of a call, one after the other, on a thread of the library; a null pointer is the last. It must not panic.
pub type Sink = extern "C" fn(context: *mut c_void, event: *const u8, len: usize);

/// What the library offers.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`ABI`] of the library.
    pub abi: u32,
    /// Version of its package, as text that lives as long as the library.
    pub version: *const u8,
    /// Bytes of the version.
    pub version_len: usize,
    /// Does what a method says with the JSON of its body, and gives `{"ok": …}` or `{"error": …}`. Where there is a sink, events go
    /// to it with `context`, also after the return, up to and including the null event; a call that fails does not send that one.
    pub call: extern "C" fn(
        method: *const u8,
        method_len: usize,
        body: *const u8,
        body_len: usize,
        sink: Option<Sink>,
        context: *mut c_void,
    ) -> Bytes,
    /// Gives the bytes of an answer back.
    pub release: extern "C" fn(Bytes),
}
