#![allow(clippy::unwrap_used)]

use tch::Device;

use super::{AttentionPlan, CacheShape, Keys, Rows, Sight};
use crate::model::{LogitRows, Step, StepSequence};

fn step(sequences: &[(usize, usize, Vec<u32>)]) -> Step {
    let mut step = Step::default();
    for (start, len, blocks) in sequences {
        step.tokens.extend(vec![0; *len]);
        step.sequences.push(StepSequence {
            start: *start,
            len: *len,
            blocks: blocks.clone(),
            state: 0,
            logits: LogitRows::Last,
        });
    }
    step
}

/// Keys, rows and whether it is the first of its rows, of each part.
fn parts(step: &Step, window: Option<usize>) -> Vec<String> {
    planned(step, window, false)
}

fn planned(step: &Step, window: Option<usize>, has_pages: bool) -> Vec<String> {
    let cache = CacheShape {
        block_tokens: 4,
        row_bytes: 1024,
        device: Device::Cpu,
        has_pages,
    };
    let plan = AttentionPlan::new(step, window, cache).unwrap();
    let list = |tensor: &tch::Tensor| format!("{:?}", Vec::<i64>::try_from(tensor.flatten(0, -1)).unwrap());
    let part = |part: &super::Part| {
        let rows = match &part.rows {
            Rows::All => "all rows".into(),
            Rows::Run(start, len) => format!("{len} rows from {start}"),
            Rows::List(rows) => format!("rows {}", list(rows)),
        };
        let keys = match &part.keys {
            Keys::Step(start, len) => format!("step {start}+{len}"),
            Keys::Slots(start, len) => format!("slots {start}+{len}"),
            Keys::Blocks { blocks, skip, len } => format!("blocks {} {skip}+{len}", list(blocks)),
            Keys::Each(blocks) => format!("each {}", list(blocks)),
            Keys::Pages(pages) => {
                let spans = pages.spans.iter();
                let spans: Vec<_> = spans
                    .map(|span| format!("{:?} {}+{}", span.blocks, span.skip, span.len))
                    .collect();
                format!("pages {}", spans.join(", "))
            }
        };
        let sight = match &part.sight {
            Sight::All => "",
            Sight::Causal => " causal",
            Sight::Mask(_) | Sight::Each(_) => " mask",
        };
        format!("{}{rows}: {keys}{sight}", if part.first { "" } else { "+ " })
    };
    plan.parts.iter().map(part).collect()
}

#[test]
fn a_shared_prefix_is_one_part() {
    let samples = step(&[
        (14, 1, vec![10, 11, 12, 0]),
        (13, 1, vec![10, 11, 12, 1]),
        (15, 1, vec![10, 11, 12, 2]),
    ]);
    assert_eq!(
        parts(&samples, None),
        ["all rows: each [0, 1, 2] mask", "+ all rows: slots 40+12"]
    );
}

#[test]
fn a_kernel_that_goes_to_the_cache_gets_all_ends_at_once() {
    let samples = step(&[
        (14, 1, vec![10, 11, 12, 0]),
        (13, 1, vec![10, 11, 12, 1]),
        (30, 1, vec![20, 21, 22, 23, 24, 25, 26, 27]),
        (0, 2, vec![40]),
    ]);
    assert_eq!(
        planned(&samples, None, true),
        [
            "2 rows from 3: step 3+2 causal",
            "3 rows from 0: pages [0] 0+3, [1] 0+2, [20, 21, 22, 23, 24, 25, 26, 27] 0+31",
            "+ 2 rows from 0: slots 40+12"
        ]
    );
    assert_eq!(
        planned(&step(&[(18, 1, vec![0, 1, 2, 3, 4])]), Some(6), true),
        ["all rows: pages [3, 4] 1+6"]
    );
}

#[test]
fn prefixes_of_prefixes_are_parts_too() {
    let sequences = step(&[
        (18, 1, vec![5, 6, 20, 21, 0]),
        (18, 1, vec![5, 6, 30, 31, 1]),
        (18, 1, vec![5, 6, 20, 21, 2]),
        (18, 1, vec![5, 6, 30, 32, 3]),
        (18, 1, vec![7, 8, 9, 10, 11]),
    ]);
    assert_eq!(
        parts(&sequences, None),
        [
            // Those with one block of their own, three, and five; the single block 30 is not worth a part.
            "rows [0, 2]: each [0, 2] mask",
            "rows [1, 3]: each [30, 31, 1, 30, 32, 3] mask",
            "1 rows from 4: slots 28+19",
            "+ 4 rows from 0: slots 20+8",
            "+ rows [0, 2]: slots 80+8",
        ]
    );
}

#[test]
fn prompts_see_themselves_and_what_was_before() {
    let sequences = step(&[(8, 5, vec![3, 9, 1, 2]), (0, 3, vec![7]), (6, 1, vec![5, 6])]);
    assert_eq!(
        parts(&sequences, None),
        [
            "3 rows from 5: step 5+3 causal",
            "5 rows from 0: step 0+5 causal",
            "1 rows from 8: slots 20+7",
            "+ 5 rows from 0: blocks [3, 9] 0+8",
        ]
    );
}

#[test]
fn a_window_cuts_what_is_before_it() {
    let sequences = step(&[(18, 1, vec![0, 1, 2, 3, 4]), (10, 2, vec![5, 6, 7]), (2, 1, vec![8])]);
    assert_eq!(
        parts(&sequences, Some(6)),
        [
            "2 rows from 1: slots 25+7 mask",
            "1 rows from 3: slots 32+3",
            "1 rows from 0: slots 13+6"
        ]
    );
    assert_eq!(parts(&sequences, Some(19)), parts(&sequences, None));
}
