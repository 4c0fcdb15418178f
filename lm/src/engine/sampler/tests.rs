//! What is drawn, how often, and with which log-probabilities.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use super::*;

fn sampler(sampling: &Sampling, logprobs: Option<usize>, prompt: &[i64], sample: u32) -> Sampler {
    let seed = sampling.seed.unwrap_or(1);
    Sampler::new(
        sampling,
        logprobs,
        seed,
        sample,
        &Arc::new(prompt.iter().copied().collect()),
    )
}

/// A row without structure, its logits from about -6 to 6.
fn row(width: usize, seed: u64) -> Vec<f32> {
    let mut generator = ChaCha12Rng::seed_from_u64(seed);
    (0..width)
        .map(|_| (generator.next_u32() as f32 / u32::MAX as f32 - 0.5) * 12.0)
        .collect()
}

fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let weights: Vec<f64> = logits
        .iter()
        .map(|logit| (f64::from(*logit) / temperature).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Draws often, compares the frequencies with the expected probabilities, and each log-probability with that of its token.
fn draws_follow(sampling: &Sampling, row: &[f32], expected: &[f64]) {
    const DRAWS: usize = 4_000;
    let mut sampler = sampler(sampling, Some(0), &[], 0);
    let mut scratch = Scratch::default();
    let mut counts = vec![0_usize; row.len()];
    for _ in 0..DRAWS {
        let drawn = sampler.draw(row, &mut scratch).unwrap();
        let id = drawn.id as usize;
        counts[id] += 1;
        assert!(expected[id] > 0.0, "{sampling:?} drew {id}");
        let logprob = drawn.logprobs.unwrap().sampling;
        assert!(
            (f64::from(logprob) - expected[id].ln()).abs() < 1e-4,
            "{sampling:?}: {logprob}"
        );
    }
    for (count, probability) in counts.iter().zip(expected) {
        let mean = probability * DRAWS as f64;
        let spread = (mean * (1.0 - probability)).sqrt();
        assert!(
            (*count as f64 - mean).abs() <= 5.0 * spread + 1.0,
            "{sampling:?}: {count} draws, {mean} expected"
        );
    }
}

fn normalized(probabilities: Vec<f64>) -> Vec<f64> {
    let total: f64 = probabilities.iter().sum();
    probabilities
        .into_iter()
        .map(|probability| probability / total)
        .collect()
}

#[test]
fn the_highest_logit_wins_at_temperature_0_and_of_equal_ones_the_first() {
    let mut greedy = sampler(&Sampling::greedy(), Some(2), &[], 0);
    let drawn = greedy
        .draw(&[0.0, 3.0, -1.0, 3.0, f32::NEG_INFINITY], &mut Scratch::default())
        .unwrap();
    assert_eq!(drawn.id, 1);
    let logprobs = drawn.logprobs.unwrap();
    assert_eq!(logprobs.sampling, 0.0);
    assert_eq!(logprobs.top.iter().map(|top| top.id).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(logprobs.top[0].logprob, logprobs.model);
}

#[test]
fn draws_follow_the_distribution_at_any_temperature() {
    let row = row(700, 3);
    for temperature in [0.3, 1.0, 1.7] {
        let sampling = Sampling {
            temperature: Some(temperature),
            ..Sampling::default()
        };
        draws_follow(&sampling, &row, &softmax(&row, temperature));
    }
}

#[test]
fn filters_leave_the_tokens_that_they_promise() {
    let row = row(300, 4);
    let temperature = 1.3;
    let full = softmax(&row, temperature);
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
    // As they are defined: sorted, cut, and normalized again.
    let reference = |top_k: Option<usize>, top_p: f64, min_p: f64| {
        let mut kept = vec![0.0; row.len()];
        let chosen = &order[..top_k.unwrap_or(row.len())];
        let total: f64 = chosen.iter().map(|id| full[*id]).sum();
        let mut sum = 0.0;
        for id in chosen {
            if full[*id] >= min_p * full[order[0]] {
                kept[*id] = full[*id];
            }
            sum += full[*id];
            if sum >= top_p * total {
                break;
            }
        }
        normalized(kept)
    };
    for (top_k, top_p, min_p) in [
        (Some(1), 1.0, 0.0),
        (Some(20), 1.0, 0.0),
        (Some(1000), 1.0, 0.0),
        (None, 0.6, 0.0),
        (None, 1e-9, 0.0),
        (None, 1.0, 0.2),
        (Some(40), 0.7, 0.0),
        (Some(40), 0.9, 0.3),
        (None, 0.9, 0.3),
        (None, 0.3, 0.01),
    ] {
        let sampling = Sampling {
            temperature: Some(temperature),
            top_k,
            top_p: Some(top_p),
            min_p: Some(min_p),
            ..Sampling::default()
        };
        draws_follow(
            &sampling,
            &row,
            &reference(top_k.map(|count| count.min(300)), top_p, min_p),
        );
    }
}

#[test]
fn model_logprobs_are_those_before_penalties_and_filters() {
    let row = row(500, 5);
    let sampling = Sampling {
        temperature: Some(0.5),
        top_k: Some(10),
        repetition_penalty: Some(1.5),
        presence_penalty: Some(0.7),
        ..Sampling::default()
    };
    let expected = softmax(&row, 1.0);
    let mut sampler = sampler(&sampling, Some(500), &[3, 4, 5], 0);
    for _ in 0..50 {
        let drawn = sampler.draw(&row, &mut Scratch::default()).unwrap();
        let logprobs = drawn.logprobs.unwrap();
        assert!((f64::from(logprobs.model) - expected[drawn.id as usize].ln()).abs() < 1e-4);
        let sum: f64 = logprobs.top.iter().map(|top| f64::from(top.logprob).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        assert!(logprobs.top.windows(2).all(|pair| pair[0].logprob >= pair[1].logprob));
    }
}

#[test]
fn without_temperature_and_filters_both_logprobs_are_the_same() {
    let row = row(1000, 6);
    let mut sampler = sampler(&Sampling::default(), Some(0), &[], 0);
    for _ in 0..50 {
        let logprobs = sampler.draw(&row, &mut Scratch::default()).unwrap().logprobs.unwrap();
        assert!((logprobs.model - logprobs.sampling).abs() < 1e-4);
    }
}

#[test]
fn penalties_change_logits_as_they_are_defined() {
    let greedy = |penalties: fn(&mut Sampling)| {
        let mut sampling = Sampling::greedy();
        penalties(&mut sampling);
        sampling
    };
    let draws = |sampling: &Sampling, prompt: &[i64], row: &[f32], count: usize| -> Vec<i64> {
        let mut sampler = sampler(sampling, None, prompt, 0);
        (0..count)
            .map(|_| sampler.draw(row, &mut Scratch::default()).unwrap().id)
            .collect()
    };
    // Positive logits are divided, negative ones multiplied; of the prompt and of the answer, once each.
    let repetition = greedy(|sampling| sampling.repetition_penalty = Some(2.0));
    assert_eq!(draws(&repetition, &[0], &[4.0, 3.0, 1.0, -1.0], 4), [1, 0, 0, 0]);
    assert_eq!(draws(&repetition, &[0, 1], &[-1.0, -1.5, -2.5], 2), [0, 0]);
    assert_eq!(draws(&repetition, &[0], &[-1.0, -1.5, -2.5], 2), [1, 0]);
    // Once for tokens of the answer, however often they are there.
    let presence = greedy(|sampling| sampling.presence_penalty = Some(1.5));
    assert_eq!(draws(&presence, &[0], &[4.0, 3.0, 1.0], 5), [0, 1, 0, 0, 0]);
    // For each time that they are there.
    let frequency = greedy(|sampling| sampling.frequency_penalty = Some(0.75));
    assert_eq!(draws(&frequency, &[0], &[4.0, 3.0, 1.0], 6), [0, 0, 1, 0, 1, 0]);
}

#[test]
fn draws_follow_from_the_seed_and_the_number_of_the_sample() {
    let row = row(400, 7);
    let draws = |seed, sample| -> Vec<i64> {
        let sampling = Sampling {
            seed: Some(seed),
            ..Sampling::default()
        };
        let mut sampler = sampler(&sampling, None, &[], sample);
        (0..30)
            .map(|_| sampler.draw(&row, &mut Scratch::default()).unwrap().id)
            .collect()
    };
    assert_eq!(draws(1, 0), draws(1, 0));
    assert_ne!(draws(1, 0), draws(1, 1));
    assert_ne!(draws(1, 0), draws(2, 0));
    assert_ne!(draws(1, 1), draws(2, 0));
}

#[test]
fn logits_that_are_no_numbers_are_an_error() {
    for broken in [[0.0, f32::NAN, 1.0], [0.0, f32::INFINITY, 1.0], [f32::NEG_INFINITY; 3]] {
        for sampling in [Sampling::default(), Sampling::greedy()] {
            let error = sampler(&sampling, None, &[], 0)
                .draw(&broken, &mut Scratch::default())
                .unwrap_err();
            assert!(error.to_string().contains("logits"), "{error}");
        }
    }
}

#[test]
fn impossible_tokens_are_never_drawn() {
    let mut row = vec![f32::NEG_INFINITY; 600];
    row[300] = 1.0;
    row[599] = -80.0;
    for sampling in [
        Sampling::default(),
        Sampling {
            top_k: Some(5),
            ..Sampling::default()
        },
        Sampling {
            top_p: Some(0.999),
            ..Sampling::default()
        },
    ] {
        let mut sampler = sampler(&sampling, None, &[], 0);
        for _ in 0..200 {
            assert_eq!(sampler.draw(&row, &mut Scratch::default()).unwrap().id, 300);
        }
    }
}

/// Logits as language models give them: a few tokens far above the rest.
fn peaked(width: usize, seed: u64) -> Vec<f32> {
    let mut row = row(width, seed);
    for (number, logit) in row.iter_mut().enumerate() {
        *logit = *logit / 2.0 + if number % 1009 == 7 { 10.0 } else { 0.0 };
    }
    row
}

/// Prints microseconds a row: the fastest of 40, for logits like those of a language model, and for flat ones:
/// `cargo test --release -p clade-lm --lib cost_of_a_row -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn cost_of_a_row() {
    let with = |change: fn(&mut Sampling)| {
        let mut sampling = Sampling::default();
        change(&mut sampling);
        sampling
    };
    let settings = [
        ("greedy", Sampling::greedy(), None),
        ("greedy, logprobs", Sampling::greedy(), Some(5)),
        ("temperature", with(|_| {}), None),
        ("temperature, logprobs", with(|_| {}), Some(0)),
        ("top-k 50", with(|sampling| sampling.top_k = Some(50)), None),
        ("top-p 0.95", with(|sampling| sampling.top_p = Some(0.95)), None),
        ("min-p 0.05", with(|sampling| sampling.min_p = Some(0.05)), None),
        (
            "top-k 20, top-p 0.95, penalty, logprobs",
            with(|sampling| {
                sampling.top_k = Some(20);
                sampling.top_p = Some(0.95);
                sampling.repetition_penalty = Some(1.1);
            }),
            Some(5),
        ),
    ];
    for width in [49_152, 151_936, 248_320] {
        for (name, sampling, logprobs) in &settings {
            let mut sampler = sampler(sampling, *logprobs, &[1, 2, 3], 0);
            let mut scratch = Scratch::default();
            let mut fastest = |row: &[f32]| {
                let mut time = || {
                    let start = std::time::Instant::now();
                    std::hint::black_box(sampler.draw(row, &mut scratch).unwrap());
                    start.elapsed().as_micros()
                };
                (0..40).map(|_| time()).min().unwrap()
            };
            let (peaked, flat) = (fastest(&peaked(width, 8)), fastest(&row(width, 8)));
            println!("{width} tokens, {name}: {peaked} µs, flat {flat} µs");
        }
    }
}
