//! Random orders of taking, sharing, copying and releasing keep the books right.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use proptest::prelude::*;

use super::pool::BlockPool;
use super::prefix::{Prefix, extend_prefixes};
use super::runs::FreeRuns;
use super::states::StateSlots;

#[derive(Debug, Clone)]
enum Action {
    /// A sequence gets one block more.
    Grow(usize),
    /// A new sequence shares all blocks of another.
    Fork(usize),
    /// The last block becomes the sequence's own.
    CopyLast(usize),
    /// The last block is full and known from now on.
    Publish(usize, u8),
    /// A new sequence begins with a known block.
    Find(u8),
    /// A sequence ends.
    End(usize),
    /// All prefixes are forgotten.
    Forget,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => any::<usize>().prop_map(Action::Grow),
        3 => any::<usize>().prop_map(Action::Fork),
        3 => any::<usize>().prop_map(Action::CopyLast),
        4 => (any::<usize>(), 0_u8..12).prop_map(|(sequence, name)| Action::Publish(sequence, name)),
        3 => (0_u8..12).prop_map(Action::Find),
        4 => any::<usize>().prop_map(Action::End),
        1 => Just(Action::Forget),
    ]
}

fn name(number: u8) -> Prefix {
    Prefix::extend(None, &[i64::from(number)])
}

fn holders(sequences: &[Vec<u32>]) -> HashMap<u32, u32> {
    let mut held = HashMap::new();
    for block in sequences.iter().flatten() {
        *held.entry(*block).or_default() += 1;
    }
    held
}

proptest! {
    #[test]
    fn counts_of_holders_are_right_after_any_order_of_actions(actions in prop::collection::vec(action(), 1..120)) {
        let mut pool = BlockPool::new(9);
        let mut sequences: Vec<Vec<u32>> = vec![Vec::new()];
        for action in actions {
            let pick = |number: usize| number % sequences.len();
            match action {
                Action::Grow(number) => {
                    let sequence = pick(number);
                    let available = pool.available();
                    match pool.take(sequences[sequence].last().copied(), 1) {
                        Some((block, _)) => {
                            prop_assert_eq!(pool.available(), available - 1);
                            prop_assert!(!sequences.iter().flatten().any(|held| *held == block));
                            sequences[sequence].push(block);
                        }
                        None => prop_assert_eq!(available, 0),
                    }
                }
                Action::Fork(number) => {
                    let copy = sequences[pick(number)].clone();
                    copy.iter().for_each(|block| pool.hold(*block));
                    sequences.push(copy);
                }
                Action::CopyLast(number) => {
                    let sequence = pick(number);
                    if let Some(&last) = sequences[sequence].last()
                        && pool.holders(last) > 1
                        && let Some((block, _)) = pool.take(None, 1)
                    {
                        pool.release(last);
                        *sequences[sequence].last_mut().unwrap() = block;
                    }
                }
                Action::Publish(number, prefix) => {
                    if let Some(&last) = sequences[pick(number)].last() {
                        pool.publish(last, name(prefix));
                        prop_assert!(pool.find(&name(prefix)).is_some());
                    }
                }
                Action::Find(prefix) => {
                    if let Some(block) = pool.find(&name(prefix)) {
                        pool.hold(block);
                        sequences.push(vec![block]);
                    }
                }
                Action::End(number) => {
                    let ended = sequences.swap_remove(pick(number));
                    ended.iter().rev().for_each(|block| pool.release(*block));
                    if sequences.is_empty() {
                        sequences.push(Vec::new());
                    }
                }
                Action::Forget => {
                    pool.forget_prefixes();
                    prop_assert_eq!(pool.kept(), 0);
                }
            }
            let checked = pool.check(&holders(&sequences));
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
    }

    #[test]
    fn runs_know_exactly_the_free_blocks(choices in prop::collection::vec((any::<bool>(), any::<usize>()), 1..200)) {
        let mut runs = FreeRuns::all(17);
        let mut taken: Vec<u32> = Vec::new();
        for (takes, number) in choices {
            if takes {
                let after = taken.last().copied();
                match runs.take(after, number % 5 + 1) {
                    Some(block) => {
                        prop_assert!(!taken.contains(&block));
                        taken.push(block);
                    }
                    None => prop_assert_eq!(taken.len(), 17),
                }
            } else if !taken.is_empty() {
                runs.put(taken.swap_remove(number % taken.len()));
            }
            prop_assert_eq!(runs.len(), 17 - taken.len());
            for block in 0..17 {
                prop_assert_eq!(runs.contains(block), !taken.contains(&block));
            }
        }
    }

    #[test]
    fn slots_are_held_free_or_snapshots(choices in prop::collection::vec((0_u8..4, 0_u8..9), 1..150)) {
        let mut slots = StateSlots::new(5);
        let mut held: Vec<u32> = Vec::new();
        for (choice, number) in choices {
            match choice {
                0 => match slots.take() {
                    Some(slot) => held.push(slot),
                    None => prop_assert_eq!(held.len(), 5),
                },
                1 if !held.is_empty() => slots.release(held.swap_remove(usize::from(number) % held.len())),
                2 => {
                    let had = slots.has(&name(number));
                    let kept = slots.keep(name(number));
                    prop_assert_eq!(kept.is_some(), !had && held.len() < 5);
                }
                _ => slots.forget(&name(number)),
            }
            let checked = slots.check(&held);
            prop_assert!(checked.is_ok(), "{:?}", checked);
        }
    }
}

#[test]
fn a_sequence_grows_into_the_next_block() {
    let mut pool = BlockPool::new(64);
    let mut first = Vec::new();
    let mut second = Vec::new();
    for _ in 0..16 {
        first.push(pool.take(first.last().copied(), 1).unwrap().0);
        second.push(pool.take(second.last().copied(), 1).unwrap().0);
    }
    for blocks in [first, second] {
        assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{blocks:?}");
    }
}

#[test]
fn the_block_that_was_held_longest_ago_gives_way() {
    let mut pool = BlockPool::new(3);
    let blocks: Vec<u32> = (0..3).map(|_| pool.take(None, 1).unwrap().0).collect();
    for (block, number) in blocks.iter().zip(0..) {
        pool.publish(*block, name(number));
        pool.release(*block);
    }
    pool.hold(blocks[0]);
    pool.release(blocks[0]);
    assert_eq!(pool.take(None, 1), Some((blocks[1], Some(name(1)))));
    assert_eq!(pool.find(&name(1)), None);
    assert_eq!(pool.find(&name(0)), Some(blocks[0]));
}

#[test]
fn a_prefix_depends_on_all_tokens_before_it() {
    let prefixes = |tokens: &[i64]| {
        let mut prefixes = Vec::new();
        extend_prefixes(&mut prefixes, tokens, 2);
        prefixes
    };
    let long = prefixes(&[1, 2, 3, 4, 5]);
    assert_eq!(long.len(), 2);
    assert_eq!(prefixes(&[1, 2]), long[..1]);
    assert_ne!(prefixes(&[9, 2, 3, 4])[1], long[1]);
    assert_ne!(prefixes(&[3, 4])[0], long[1]);
    assert_ne!(prefixes(&[2, 1])[0], long[0]);
}
