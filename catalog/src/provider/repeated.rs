//! The mark of a session whose queries are asked again and again.

/// Extension of a session's config: its queries are asked again and again.
///
/// Cold rows that they read stay decoded in memory, within [`crate::StoreOptions::cold_cache_bytes`]; scans of long texts and
/// of more rows than fit read the files each time. Tables are bound to the snapshot of the config's extensions when a plan
/// is executed, not when it is made, so that a physical plan can be kept and executed on a later snapshot.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedQueries;
