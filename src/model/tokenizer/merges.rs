//! Byte pair encoding: bytes of a piece, merged in the order of the merges.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::{Merge, Model};

/// Stands for a byte that the vocabulary lacks; nothing merges with it.
const UNKNOWN: u32 = u32::MAX;

/// The merges of a vocabulary.
#[derive(Debug)]
pub(super) struct Merges {
    /// Token of each byte.
    bytes: Vec<u32>,
    /// Rank and result of each pair of tokens.
    pairs: HashMap<(u32, u32), (u32, u32)>,
    /// Pieces that are tokens as they are, whatever the merges say.
    whole: HashSet<Vec<u8>>,
}

impl Merges {
    pub(super) fn of_model(model: &Model) -> Result<Self, String> {
        let letters = letters();
        let token = |name: &str| {
            let id = model.vocab.get(name).copied();
            id.ok_or_else(|| format!("the merges name '{name}', which the vocabulary lacks"))
        };
        let mut pairs = HashMap::with_capacity(model.merges.len());
        for (rank, merge) in model.merges.iter().enumerate() {
            let (left, right) = match merge {
                Merge::Pair([left, right]) => (left.as_str(), right.as_str()),
                Merge::Text(text) => text
                    .split_once(' ')
                    .ok_or_else(|| format!("the merge '{text}' is no pair"))?,
            };
            let rank = u32::try_from(rank).map_err(|_| "it has too many merges".to_owned())?;
            let merged = token(&format!("{left}{right}"))?;
            pairs.entry((token(left)?, token(right)?)).or_insert((rank, merged));
        }
        let byte_of: HashMap<char, u8> = (0..=u8::MAX)
            .zip(&letters)
            .map(|(byte, letter)| (*letter, byte))
            .collect();
        let bytes_of = |name: &String| name.chars().map(|letter| byte_of.get(&letter).copied()).collect();
        Ok(Self {
            bytes: letters
                .iter()
                .map(|letter| model.vocab.get(letter.to_string().as_str()).copied().unwrap_or(UNKNOWN))
                .collect(),
            pairs,
            whole: if model.ignore_merges {
                model.vocab.keys().filter_map(bytes_of).collect()
            } else {
                HashSet::new()
            },
        })
    }

    /// Tokens of a piece.
    pub(super) fn count(&self, piece: &[u8]) -> u64 {
        if self.whole.contains(piece) {
            return 1;
        }
        let mut tokens: Vec<u32> = piece.iter().map(|byte| self.bytes[usize::from(*byte)]).collect();
        let length = tokens.len();
        // Each token is a link of a chain; one that is merged into its left neighbour leaves it.
        let mut next: Vec<usize> = (1..=length).collect();
        let mut previous: Vec<Option<usize>> = (0..length).map(|at| at.checked_sub(1)).collect();
        let mut is_gone = vec![false; length];
        let mut heap = BinaryHeap::new();
        let mut left_over = length as u64;
        for at in 1..length {
            self.offer(&mut heap, &tokens, at - 1, at);
        }
        while let Some(Reverse((_, at, pair))) = heap.pop() {
            let right = next[at];
            let is_stale = is_gone[at] || right >= length || (tokens[at], tokens[right]) != pair;
            let Some((_, merged)) = self.pairs.get(&pair).filter(|_| !is_stale) else {
                continue;
            };
            tokens[at] = *merged;
            is_gone[right] = true;
            next[at] = next[right];
            left_over -= 1;
            if next[at] < length {
                previous[next[at]] = Some(at);
                self.offer(&mut heap, &tokens, at, next[at]);
            }
            if let Some(before) = previous[at] {
                self.offer(&mut heap, &tokens, before, at);
            }
        }
        left_over
    }

    /// Puts a pair of neighbours on the heap if they merge; the leftmost of equal ranks comes first.
    fn offer(&self, heap: &mut Heap, tokens: &[u32], left: usize, right: usize) {
        let pair = (tokens[left], tokens[right]);
        if let Some((rank, _)) = self.pairs.get(&pair) {
            heap.push(Reverse((*rank, left, pair)));
        }
    }
}

/// Merges that wait: rank, place of the left token, both tokens.
type Heap = BinaryHeap<Reverse<(u32, usize, (u32, u32))>>;

/// The letter that vocabularies write for each byte: itself where it can be printed, else one from U+0100 on.
fn letters() -> Vec<char> {
    let is_printed = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut others = (0x100_u32..).filter_map(char::from_u32);
    (0..=u8::MAX)
        .map(|byte| {
            if is_printed(byte) {
                char::from(byte)
            } else {
                others.next().unwrap_or_default()
            }
        })
        .collect()
}
