//! Memory that a model takes in this process.

use crate::templates::size;

/// Memory of a model whose weights are here, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeeds {
    /// Bytes of weights.
    pub weight_bytes: u64,
    /// Bytes for keys, values and states of running requests; `None` where it is a share of what the weights leave, and they leave
    /// nothing.
    pub cache_bytes: Option<u64>,
    /// Bytes that are free on its device; `None` for a model that is loaded already.
    pub free_bytes: Option<u64>,
}

impl MemoryNeeds {
    /// Why it cannot be loaded, where there is too little memory.
    pub fn shortage(&self) -> Option<String> {
        let free = self.free_bytes?;
        let (what, needed) = match self.cache_bytes {
            None => ("its weights alone need", self.weight_bytes),
            Some(cache) => ("weights and cache need", self.weight_bytes.saturating_add(cache)),
        };
        (needed > free).then(|| format!("{what} {}, {} are free", size(needed), size(free)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn shortage(weights: u64, cache: Option<u64>, free: Option<u64>) -> Option<String> {
        let needs = MemoryNeeds {
            weight_bytes: weights * GIB,
            cache_bytes: cache.map(|cache| cache * GIB),
            free_bytes: free.map(|free| free * GIB),
        };
        needs.shortage()
    }

    #[test]
    fn what_does_not_fit_is_told_with_numbers() {
        assert_eq!(shortage(4, Some(2), Some(6)), None);
        assert_eq!(
            shortage(4, Some(3), Some(6)).as_deref(),
            Some("weights and cache need 7 GiB, 6 GiB are free")
        );
        assert_eq!(
            shortage(9, None, Some(6)).as_deref(),
            Some("its weights alone need 9 GiB, 6 GiB are free")
        );
        assert_eq!(shortage(9, Some(9), None), None, "it is loaded already");
    }
}
