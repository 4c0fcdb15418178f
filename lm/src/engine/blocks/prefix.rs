//! What a full block is known by: a hash over its tokens and all tokens before it.

use sha2::{Digest, Sha256};

/// Name of a prefix that ends with a full block. Two prefixes of the same name have the same tokens: it is half of a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::engine) struct Prefix(u128);

impl Prefix {
    /// The prefix that goes on with the tokens of one more block.
    pub(in crate::engine) fn extend(parent: Option<Self>, tokens: &[i64]) -> Self {
        let mut hash = Sha256::new();
        // A first block is not the same as one after a prefix whose name is zero.
        hash.update([u8::from(parent.is_some())]);
        hash.update(parent.map_or(0, |parent| parent.0).to_le_bytes());
        for token in tokens {
            hash.update(token.to_le_bytes());
        }
        let digest = hash.finalize();
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Self(u128::from_le_bytes(half))
    }
}

/// Adds the names of full blocks that a list lacks.
pub(in crate::engine) fn extend_prefixes(prefixes: &mut Vec<Prefix>, tokens: &[i64], block_tokens: usize) {
    for block in tokens.chunks_exact(block_tokens).skip(prefixes.len()) {
        prefixes.push(Prefix::extend(prefixes.last().copied(), block));
    }
}
