//! Deterministic ids and seeds: the same statement and ordinal always give the same attempt, node and draw.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// Joins parts with a separator that cannot occur in an id, so that ("a", "bc") and ("ab", "c") differ.
fn digest(domain: &str, parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(domain.as_bytes());
    for part in parts {
        hasher.update([0x1f]);
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

fn short_hex(digest: [u8; 32]) -> String {
    hex::encode(&digest[..10])
}

/// Hex SHA-256 of a text.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// `attempt_id = hash(statement_id, ordinal, sample)`: a statement that is run again under its id finds its attempts.
pub fn attempt_id(statement_id: &str, ordinal: i64, sample: i64) -> String {
    format!(
        "a{}",
        short_hex(digest(
            "attempt",
            &[statement_id, &ordinal.to_string(), &sample.to_string()]
        ))
    )
}

/// Node id of an attempt.
pub fn node_id(attempt_id: &str) -> String {
    format!("n{}", short_hex(digest("node", &[attempt_id])))
}

/// Sandbox job id of a try of an attempt.
pub fn job_id(attempt_id: &str, split: &str, tries: i64) -> String {
    format!(
        "j{}",
        short_hex(digest("job", &[attempt_id, split, &tries.to_string()]))
    )
}

/// Generation id of a request of a try of an attempt: a try asks again, number 1 and on, when its model was paused.
pub fn generation_id(attempt_id: &str, tries: i64, request: u32) -> String {
    let (tries, request) = (tries.to_string(), request.to_string());
    format!("g{}", short_hex(digest("generation", &[attempt_id, &tries, &request])))
}

/// Seed of a step of a run, or of an input row's sample of a statement; fits a signed 64-bit column.
pub fn derive_seed(seed: i64, purpose: &str, ordinal: i64, sample: i64) -> i64 {
    let bytes = digest(
        "seed",
        &[&seed.to_string(), purpose, &ordinal.to_string(), &sample.to_string()],
    );
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[..8]);
    (u64::from_le_bytes(word) >> 1) as i64
}

/// Random generator of the draw of a step: it depends on nothing but the run's seed and the step.
pub fn draw_rng(seed: i64, step: i64) -> ChaCha12Rng {
    ChaCha12Rng::from_seed(digest("draw", &[&seed.to_string(), &step.to_string()]))
}

/// A new id for a run or a statement (UUIDv7: sorts by time).
pub fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(digest("x", &["a", "bc"]), digest("x", &["ab", "c"]));
        assert_ne!(attempt_id("s", 1, 11), attempt_id("s", 11, 1));
    }

    #[test]
    fn seeds_are_stable_and_not_negative() {
        assert_eq!(derive_seed(1, "step", 7, 0), derive_seed(1, "step", 7, 0));
        assert_ne!(derive_seed(1, "step", 7, 0), derive_seed(2, "step", 7, 0));
        assert!((0..1000).all(|n| derive_seed(1, "step", n, 0) >= 0));
    }
}
