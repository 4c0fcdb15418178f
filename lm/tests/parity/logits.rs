//! Logits and greedy continuations of every case, by every way through the cache.

use clade_lm::{LogitRows, build};
use tch::{Device, Kind, Tensor};

use crate::support::{Apart, Case, Order, Runner, Sequence, assert_close};

macro_rules! cases {
    ($($name:ident),* $(,)?) => { $(
        mod $name {
            use super::*;

            const NAME: &str = stringify!($name);

            #[test]
            fn a_prompt_at_once() {
                at_once(&Case::read(NAME));
            }

            #[test]
            fn one_token_after_the_other() {
                one_by_one(&Case::read(NAME), Order::Following);
                one_by_one(&Case::read(NAME), Order::Scattered);
            }

            #[test]
            fn prompts_of_different_lengths_together() {
                together(&Case::read(NAME));
            }

            #[test]
            fn prompts_in_pieces_beside_a_sequence_that_goes_on() {
                pieces(&Case::read(NAME), Order::Following);
                pieces(&Case::read(NAME), Order::Scattered);
            }

            #[test]
            fn greedy_continuations() {
                greedy(&Case::read(NAME), Order::Following);
                greedy(&Case::read(NAME), Order::Scattered);
            }
        }
    )* };
}

cases![
    llama_tied,
    llama_bias,
    llama_linear,
    mistral_window,
    qwen2,
    qwen2_window,
    qwen3,
    qwen3_layer_types,
    qwen3_moe,
    qwen3_moe_unnormalised,
    qwen3_next,
    qwen3_5,
    qwen3_5_moe,
];

/// The last rows, as many as the reference has.
fn last(rows: &Tensor, expected: &Tensor) -> Tensor {
    let count = expected.size()[0];
    rows.narrow(0, rows.size()[0] - count, count)
}

fn at_once(case: &Case) {
    let mut runner = Runner::new(case.model(), Order::Following);
    for (prompt, expected) in case.prompts.iter().zip(&case.logits) {
        let mut sequence = runner.sequence();
        assert_close(&last(&runner.run(&mut sequence, prompt), expected), expected);
        let mut again = runner.sequence();
        let row = runner.step(&mut [(&mut again, prompt, LogitRows::Last)]);
        assert_close(&row, &expected.narrow(0, expected.size()[0] - 1, 1));
    }
}

fn one_by_one(case: &Case, order: Order) {
    let mut runner = Runner::new(case.model(), order);
    for (prompt, expected) in case.prompts.iter().zip(&case.logits) {
        let mut sequence = runner.sequence();
        let rows = prompt
            .iter()
            .map(|token| runner.run(&mut sequence, &[*token]))
            .collect::<Vec<_>>();
        assert_close(&last(&Tensor::cat(&rows, 0), expected), expected);
    }
}

fn together(case: &Case) {
    let mut runner = Runner::new(case.model(), Order::Following);
    let mut sequences = case.prompts.iter().map(|_| runner.sequence()).collect::<Vec<_>>();
    let mut parts = sequences
        .iter_mut()
        .zip(&case.prompts)
        .map(|(sequence, prompt)| (sequence, prompt.as_slice(), LogitRows::All))
        .collect::<Vec<_>>();
    let rows = runner.step(&mut parts);
    let mut start = 0;
    for (prompt, expected) in case.prompts.iter().zip(&case.logits) {
        let own = rows.narrow(0, start, prompt.len() as i64);
        assert_close(&last(&own, expected), expected);
        start += prompt.len() as i64;
    }
}

/// The first prompt goes on token by token, while the others come in pieces.
fn pieces(case: &Case, order: Order) {
    let mut runner = Runner::new(case.model(), order);
    let [short, middle, long] = &case.prompts[..] else {
        panic!("three prompts")
    };
    let [_, of_middle, of_long] = &case.logits[..] else {
        panic!("three prompts")
    };
    let mut sequences = [runner.sequence(), runner.sequence(), runner.sequence()];
    runner.feed(&mut sequences[0], short);
    let (mut rows_of_middle, mut rows_of_long) = (Vec::new(), Vec::new());
    let mut rows_of_short = Vec::new();
    let mut middle = middle.chunks(3);
    for (piece, token) in long.chunks(7).zip(&case.continuations[0]) {
        let [first, second, third] = &mut sequences;
        let mut parts = vec![
            (first, std::slice::from_ref(token), LogitRows::All),
            (third, piece, LogitRows::All),
        ];
        let next = middle.next();
        parts.extend(next.map(|piece| (second, piece, LogitRows::All)));
        let rows = runner.step(&mut parts);
        rows_of_short.push(rows.narrow(0, 0, 1));
        rows_of_long.push(rows.narrow(0, 1, piece.len() as i64));
        if let Some(next) = next {
            rows_of_middle.push(rows.narrow(0, 1 + piece.len() as i64, next.len() as i64));
        }
    }
    assert_close(&last(&Tensor::cat(&rows_of_middle, 0), of_middle), of_middle);
    assert_close(&last(&Tensor::cat(&rows_of_long, 0), of_long), of_long);
    let chosen = Vec::<i64>::try_from(Tensor::cat(&rows_of_short, 0).argmax(1, false)).unwrap();
    assert_eq!(chosen, case.continuations[0][1..=chosen.len()]);
}

fn greedy(case: &Case, order: Order) {
    let mut runner = Runner::new(case.model(), order);
    let mut sequences = Vec::<Sequence>::new();
    let mut tokens = Vec::new();
    for prompt in &case.prompts {
        let mut sequence = runner.sequence();
        let row = runner.step(&mut [(&mut sequence, prompt, LogitRows::Last)]);
        tokens.push(vec![row.argmax(1, false).int64_value(&[0])]);
        sequences.push(sequence);
    }
    for _ in 1..case.continuations[0].len() {
        let mut parts = sequences
            .iter_mut()
            .zip(&tokens)
            .map(|(sequence, tokens)| (sequence, &tokens[tokens.len() - 1..], LogitRows::Last))
            .collect::<Vec<_>>();
        let rows = runner.step(&mut parts);
        for (tokens, next) in tokens
            .iter_mut()
            .zip(Vec::<i64>::try_from(rows.argmax(1, false)).unwrap())
        {
            tokens.push(next);
        }
    }
    assert_eq!(tokens, case.continuations);
}

#[test]
fn experts_that_are_stored_apart() {
    for name in ["qwen3_moe", "qwen3_5_moe"] {
        let case = Case::read(name);
        let weights = Apart(case.weights.clone());
        let model = build(&case.config, &weights, Kind::Float, Device::Cpu).unwrap();
        assert_eq!(model.spec(), case.model().spec());
        let mut runner = Runner::new(model, Order::Following);
        let mut sequence = runner.sequence();
        assert_close(
            &last(&runner.run(&mut sequence, &case.prompts[2]), &case.logits[2]),
            &case.logits[2],
        );
    }
}

#[test]
fn low_precision_stays_near() {
    for name in ["llama_tied", "qwen2_window", "qwen3_5_moe"] {
        let case = Case::read(name);
        let model = build(&case.config, &case.weights, Kind::BFloat16, Device::Cpu).unwrap();
        let mut runner = Runner::new(model, Order::Scattered);
        let mut sequence = runner.sequence();
        let (prompt, expected) = (&case.prompts[1], &case.logits[1]);
        let mut rows = vec![runner.run(&mut sequence, &prompt[..6])];
        rows.extend(prompt[6..].iter().map(|token| runner.run(&mut sequence, &[*token])));
        let difference = Tensor::cat(&rows, 0) - expected;
        let share = difference.std(false).double_value(&[]) / expected.std(false).double_value(&[]);
        assert!(share < 0.1, "{name}: logits differ by {share} of their spread");
    }
}
