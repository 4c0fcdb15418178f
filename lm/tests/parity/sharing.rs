//! Sequences that share blocks, and what is copied of them.

use clade_lm::{LogitRows, Result, TensorInfo, Weights};
use tch::{Device, Kind, Tensor};

use crate::support::{Case, Formula, Order, Runner, Sequence, assert_close};

/// Logits of a whole text, by a fresh cache.
fn alone(case: &Case, text: &[i64]) -> Tensor {
    let mut runner = Runner::new(case.model(), Order::Following);
    let mut sequence = runner.sequence();
    runner.run(&mut sequence, text)
}

/// Sequences of one prompt, some of which share more than that, go on together.
fn branches(name: &str, order: Order, prefix: usize) {
    let case = Case::read(name);
    let mut runner = Runner::new(case.model(), order);
    let text = |number: i64, len: i64| {
        (0..len)
            .map(|place| (number * 31 + place * 17) % 96)
            .collect::<Vec<_>>()
    };
    let prompt = case.prompts[2][..prefix].to_vec();
    let mut root = runner.sequence();
    runner.feed(&mut root, &prompt);
    let mut sequences: Vec<(Sequence, Vec<i64>)> = Vec::new();
    for question in 0..2 {
        let mut middle = runner.fork(&root);
        let text = text(question, 13 + question);
        runner.feed(&mut middle, &text);
        for _ in 0..3 {
            sequences.push((runner.fork(&middle), [prompt.clone(), text.clone()].concat()));
        }
    }
    sequences.push((runner.fork(&root), prompt.clone()));
    sequences.swap(0, 4);
    let mut rows = sequences.iter().map(|_| Vec::new()).collect::<Vec<Vec<Tensor>>>();
    for round in 0..9 {
        let next = (0..7).map(|number| text(number, 10)[round]).collect::<Vec<_>>();
        let mut parts = sequences
            .iter_mut()
            .zip(&next)
            .map(|((sequence, _), token)| (sequence, std::slice::from_ref(token), LogitRows::Last))
            .collect::<Vec<_>>();
        let logits = runner.step(&mut parts);
        for (number, ((_, text), token)) in sequences.iter_mut().zip(next).enumerate() {
            text.push(token);
            rows[number].push(logits.narrow(0, number as i64, 1));
        }
    }
    for ((_, text), rows) in sequences.iter().zip(rows) {
        let expected = alone(&case, text);
        assert_close(&Tensor::cat(&rows, 0), &expected.narrow(0, expected.size()[0] - 9, 9));
    }
}

#[test]
fn a_shared_prefix_is_the_same_as_separate_ones() {
    for name in [
        "llama_tied",
        "llama_linear",
        "qwen3",
        "mistral_window",
        "qwen2_window",
        "qwen3_5_moe",
    ] {
        for order in [Order::Following, Order::Scattered] {
            // Ends in a block, at the end of one, and before there is anything worth sharing.
            for prefix in [61, 64, 3] {
                branches(name, order, prefix);
            }
        }
    }
}

#[test]
fn prompts_that_go_on_from_a_shared_prefix() {
    for name in ["llama_tied", "qwen2_window", "qwen3_next"] {
        let case = Case::read(name);
        let mut runner = Runner::new(case.model(), Order::Scattered);
        let prompt = &case.prompts[2];
        let mut root = runner.sequence();
        runner.feed(&mut root, &prompt[..40]);
        let (mut first, mut second) = (runner.fork(&root), runner.fork(&root));
        let rows = runner.step(&mut [
            (&mut first, &prompt[40..55], LogitRows::Last),
            (&mut second, &prompt[60..80], LogitRows::All),
            (&mut root, &prompt[40..41], LogitRows::Last),
        ]);
        let expected = alone(&case, prompt);
        assert_close(&rows.narrow(0, 0, 1), &expected.narrow(0, 54, 1));
        assert_close(&rows.narrow(0, 21, 1), &expected.narrow(0, 40, 1));
        let other = alone(&case, &[&prompt[..40], &prompt[60..]].concat());
        assert_close(&rows.narrow(0, 1, 20), &other.narrow(0, 40, 20));
    }
}

#[test]
fn a_copy_does_not_change_with_its_original() {
    for name in ["llama_tied", "qwen3_5"] {
        let case = Case::read(name);
        let mut runner = Runner::new(case.model(), Order::Following);
        let prompt = &case.prompts[1];
        let mut original = runner.sequence();
        runner.feed(&mut original, &prompt[..10]);
        let mut copy = runner.fork(&original);
        runner.feed(&mut original, &[90, 91, 92]);
        assert_close(
            &runner.run(&mut copy, &prompt[10..]),
            &alone(&case, prompt).narrow(0, 10, 7),
        );
    }
}

#[test]
fn a_slot_is_forgotten_when_a_sequence_begins() {
    let case = Case::read("qwen3_5_moe");
    let mut runner = Runner::new(case.model(), Order::Following);
    let mut sequence = runner.sequence();
    runner.feed(&mut sequence, &case.prompts[2]);
    for len in [1, 17] {
        let mut next = Sequence {
            len: 0,
            blocks: sequence.blocks.clone(),
            state: sequence.state,
        };
        let text = &case.prompts[1][..len];
        assert_close(&runner.run(&mut next, text), &alone(&case, text));
    }
}

#[test]
fn what_is_not_finite_stays_in_its_sequence() {
    let case = Case::read("llama_tied");
    let mut runner = Runner::new(case.model(), Order::Following);
    let mut sequence = runner.sequence();
    runner.model.replace_weights(&NotFinite(case.weights.clone())).unwrap();
    let rows = runner.run(&mut sequence, &case.prompts[2]);
    assert!(bool::try_from(rows.isnan().all()).unwrap());
    runner.model.replace_weights(&case.weights).unwrap();
    // Two sequences take its blocks and read them together.
    let mut sequences = [
        Sequence {
            len: 0,
            blocks: sequence.blocks[..9].to_vec(),
            state: 0,
        },
        Sequence {
            len: 0,
            blocks: sequence.blocks[9..].to_vec(),
            state: 1,
        },
    ];
    for round in 0..17 {
        let token = case.prompts[1][round];
        let [first, second] = &mut sequences;
        let logits = runner.step(&mut [(first, &[token], LogitRows::Last), (second, &[token], LogitRows::Last)]);
        let expected = case.logits[1].narrow(0, round as i64, 1);
        assert_close(&logits.narrow(0, 0, 1), &expected);
        assert_close(&logits.narrow(0, 1, 1), &expected);
    }
}

/// Weights of which none is a number.
#[derive(Debug)]
struct NotFinite(Formula);

impl Weights for NotFinite {
    fn tensors(&self) -> Vec<TensorInfo> {
        self.0.tensors()
    }

    fn has(&self, name: &str) -> bool {
        self.0.has(name)
    }

    fn get(&self, name: &str, kind: Kind, device: Device) -> Result<Tensor> {
        Ok(self.0.get(name, kind, device)? * f64::NAN)
    }
}
