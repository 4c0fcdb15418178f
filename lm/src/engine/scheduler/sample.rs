//! Requests and samples as the scheduler keeps them.

use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};

use futures::channel::mpsc::UnboundedSender;

use super::super::blocks::Prefix;
use super::super::event::{Event, Usage};
use super::super::generation::Canceller;
use super::super::request::Request;
use super::super::sampler::Sampler;
use super::super::text::SampleText;

/// Place of a request in the order of service: the higher priority first, then the one that came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct GroupKey {
    pub(super) priority: Reverse<i32>,
    pub(super) arrival: u64,
}

/// Place of a sample in the order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct SampleKey {
    pub(super) group: GroupKey,
    pub(super) index: u32,
}

impl GroupKey {
    /// Keys of all samples of the request.
    pub(super) fn samples(self) -> RangeInclusive<SampleKey> {
        let key = |index| SampleKey { group: self, index };
        key(0)..=key(u32::MAX)
    }
}

/// A request that was taken.
#[derive(Debug)]
pub(in crate::engine) struct Submission {
    pub(in crate::engine) request: Request,
    /// Texts of its samples, as many as there are.
    pub(in crate::engine) texts: Vec<SampleText>,
    pub(in crate::engine) seed: u64,
    pub(in crate::engine) events: UnboundedSender<Event>,
    pub(in crate::engine) canceller: Canceller,
}

/// A request whose samples have not all ended.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) request: Request,
    pub(super) events: UnboundedSender<Event>,
    pub(super) canceller: Canceller,
    /// Samples that have not ended.
    pub(super) open: usize,
    /// Samples after the first one that wait for the prompt, which the first one computes.
    pub(super) followers: u32,
    /// Whether its prompt was begun.
    pub(super) has_begun: bool,
}

impl Group {
    /// Whether nobody is interested any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.canceller.is_cancelled() || self.events.is_closed()
    }
}

/// A sample that has not ended. It has tokens that are known and tokens that are in the cache; a step brings the second closer to the
/// first, and where they meet a new token is drawn. So a prompt, an answer and an answer that is computed again are the same to it.
#[derive(Debug)]
pub(super) struct Sample {
    /// Prompt and answer; empty for a follower.
    pub(super) tokens: Vec<i64>,
    /// Of these, how many are in the cache.
    pub(super) computed: usize,
    /// Blocks of `computed` tokens and of those that a running prompt will need.
    pub(super) blocks: Vec<u32>,
    /// Slot of the recurrent state.
    pub(super) slot: Option<u32>,
    /// Names of the full blocks of `tokens`, as far as they were needed.
    pub(super) prefixes: Vec<Prefix>,
    /// Blocks that others expect of it.
    pub(super) expected: Range<usize>,
    /// Numbers of tokens after which the recurrent state is kept for others; a step ends there.
    pub(super) snapshots_at: Vec<usize>,
    pub(super) sampler: Sampler,
    pub(super) text: SampleText,
    pub(super) usage: Usage,
}

impl Sample {
    /// Tokens that are not in the cache.
    pub(super) fn remaining(&self) -> usize {
        self.tokens.len() - self.computed
    }
}
