//! Invariants over arbitrary inputs.

use clade_udfs::grading::{human_rank, leaderboard_rank, medal, medal_positions};
use clade_udfs::programs::{
    code_fingerprint, code_similarity, error_signature, method_family, python_imports, unified_diff,
};
use clade_udfs::text::{
    clear_log, extract_code, final_validation_score, plan_text, sanitize_output, strip_thinking, truncate_middle,
};
use clade_udfs::utility::{DeltaMode, hybrid_norm, minmax_norm, positive_delta_norm, rank_norm, softmax};
use datafusion::arrow::array::Float64Array;
use proptest::collection::vec;
use proptest::prelude::*;

/// Scores as they come: mostly ordinary and often equal, sometimes missing, infinite or not a number.
fn score() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        4 => (-100.0..100.0).prop_map(Some),
        3 => prop::sample::select(vec![0.0, -0.0, 0.5, 1.0, 2.0]).prop_map(Some),
        1 => any::<f64>().prop_map(Some),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).prop_map(Some),
        1 => Just(None),
    ]
}

fn scores() -> impl Strategy<Value = Vec<Option<f64>>> {
    vec(score(), 0..40)
}

/// Text made of what replies and programs are made of.
fn reply() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "```python\n",
        "```\n",
        "```",
        "~~~\n",
        "``` py\n",
        "x = 1\n",
        "import os, numpy as np\n",
        "from a.b import c\n",
        "def f(:\n",
        "    return 1\n",
        "print('x')\n",
        "'''",
        "\"",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "f'{x!r:>{w}}'",
        "\\\n",
        "\r\n",
        "<think>",
        "</think>",
        "# note\n",
        "\t",
        ";",
        ":",
        ",",
        ".",
        "=",
        "lambda",
        " if ",
        " else ",
        "async ",
        "match ",
        "é",
        "\u{2028}",
        "Final Score: 1\n",
        "Final Validation Score: 0.5\n",
        "Plan\n",
        "hello ",
        "\0",
        "class A: pass\n",
    ]);
    prop_oneof![vec(part, 0..30).prop_map(|parts| parts.concat()), any::<String>()]
}

fn is_valid(value: &Option<f64>) -> bool {
    value.is_some_and(f64::is_finite)
}

/// The scale lies in 0..1, is missing exactly for invalid values, and moves with the order of the rows.
fn check_scale(values: &[Option<f64>], scale: impl Fn(&Float64Array) -> Float64Array) {
    let array: Float64Array = values.iter().copied().collect();
    let scaled = scale(&array);
    prop_assert_scale(values, &scaled);
    let reversed: Float64Array = values.iter().rev().copied().collect();
    let scaled_reversed: Vec<Option<f64>> = scale(&reversed).iter().collect();
    let straight: Vec<Option<f64>> = scaled.iter().rev().collect();
    assert_eq!(scaled_reversed, straight);
}

fn prop_assert_scale(values: &[Option<f64>], scaled: &Float64Array) {
    assert_eq!(values.len(), scaled.len());
    for (value, scaled) in values.iter().zip(scaled) {
        assert_eq!(is_valid(value), scaled.is_some());
        assert!(scaled.is_none_or(|scaled| (0.0..=1.0).contains(&scaled)), "{scaled:?}");
    }
}

/// A higher value never has a lower place on the scale.
fn check_monotone(values: &[Option<f64>], scaled: &Float64Array) {
    let mut pairs: Vec<(f64, f64)> = values
        .iter()
        .zip(scaled)
        .filter_map(|(value, scaled)| Some((value.filter(|value| value.is_finite())?, scaled?)))
        .collect();
    pairs.sort_by(|left, right| left.0.total_cmp(&right.0));
    assert!(
        pairs
            .windows(2)
            .all(|pair| pair[0].1 <= pair[1].1 || pair[0].0 == pair[1].0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scales_are_between_zero_and_one(values in scores(), weight in -1.0..2.0f64) {
        let array: Float64Array = values.iter().copied().collect();
        let weights = |array: &Float64Array| Float64Array::from(vec![weight; array.len()]);
        check_scale(&values, minmax_norm);
        check_scale(&values, rank_norm);
        check_scale(&values, |array| hybrid_norm(array, &weights(array)));
        for mode in [DeltaMode::Minmax, DeltaMode::Rank, DeltaMode::Hybrid] {
            check_scale(&values, |array| positive_delta_norm(array, mode, &weights(array)));
        }
        check_monotone(&values, &minmax_norm(&array));
        check_monotone(&values, &rank_norm(&array));
    }

    #[test]
    fn probabilities_sum_to_one(values in scores(), temperature in prop_oneof![Just(0.0), 1e-9..10.0f64]) {
        let array: Float64Array = values.iter().copied().collect();
        let probabilities = softmax(&array, temperature);
        prop_assert_scale(&values, &probabilities);
        let total: f64 = probabilities.iter().flatten().sum();
        let valid = values.iter().any(is_valid);
        let expected = if valid { 1.0 } else { 0.0 };
        prop_assert!((total - expected).abs() < 1e-9);
        check_monotone(&values, &probabilities);
    }

    #[test]
    fn programs_of_any_text_are_read(text in reply()) {
        let imports = python_imports(&text);
        prop_assert!(imports.is_sorted() && imports.iter().all(|module| text.contains(module.as_str())));
        prop_assert!(!method_family(&text).is_empty());
        prop_assert_eq!(code_fingerprint(&text).len(), 64);
        prop_assert_eq!(code_similarity(&text, &text), 1.0);
        prop_assert_eq!(unified_diff(&text, &text), "");
        error_signature("code_execution_error", &text);
        plan_text(&text);
        clear_log(&text);
        final_validation_score(&text);
    }

    #[test]
    fn similarity_is_symmetric(a in reply(), b in reply()) {
        let similarity = code_similarity(&a, &b);
        prop_assert!((0.0..=1.0).contains(&similarity));
        prop_assert_eq!(similarity, code_similarity(&b, &a));
        unified_diff(&a, &b);
    }

    #[test]
    fn extraction_is_idempotent(text in reply()) {
        if let Some(code) = extract_code(&text).code {
            let again = extract_code(&code);
            prop_assert_eq!(again.code.as_deref(), Some(code.as_str()));
            prop_assert!(!again.fenced && !code.contains('\r'));
        }
    }

    #[test]
    fn thinking_is_stripped_once_and_for_all(text in reply()) {
        let answer = strip_thinking(&text);
        prop_assert!(answer.len() <= text.len());
        prop_assert_eq!(strip_thinking(&answer), answer);
    }

    #[test]
    fn sanitized_logs_stay_sanitized(text in reply()) {
        let clean = sanitize_output(&text);
        prop_assert!(!clean.contains("Final Score: 1\n"));
        prop_assert_eq!(sanitize_output(&clean), clean);
    }

    #[test]
    fn truncation_keeps_both_ends(text in any::<String>(), max in 0..80_usize, keep in 0..40_usize) {
        let length = text.chars().count();
        let short = truncate_middle(&text, max, keep);
        prop_assert!(short.chars().count() <= length);
        if length <= max {
            prop_assert_eq!(&*short, text.as_str());
        }
        let head: String = text.chars().take(keep).collect();
        prop_assert!(short.starts_with(&head));
        let tail: String = text.chars().skip(length.saturating_sub(keep)).collect();
        prop_assert!(short.ends_with(&tail));
    }

    #[test]
    fn grades_do_not_depend_on_the_order(score in score(), board in vec(-3.0..3.0f64, 0..30), higher: bool) {
        let score = score.unwrap_or(f64::NAN);
        let reversed: Vec<f64> = board.iter().rev().copied().collect();
        let rank = leaderboard_rank(score, &board, higher);
        prop_assert_eq!(rank.is_some(), score.is_finite() && !board.is_empty());
        prop_assert_eq!(rank, leaderboard_rank(score, &reversed, higher));
        prop_assert_eq!(medal(score, &board, higher), medal(score, &reversed, higher));
        prop_assert_eq!(rank, leaderboard_rank(-score, &board.iter().map(|team| -team).collect::<Vec<_>>(), !higher));
        prop_assert!(rank.is_none_or(|rank| (1..=board.len() as i64 + 1).contains(&rank)));
        prop_assert!(human_rank(score, &board, higher).is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn medal_thresholds_are_in_order(teams in 1..100_000_i64) {
        let positions = medal_positions(teams).unwrap();
        prop_assert!(1 <= positions.gold && positions.gold <= positions.silver && positions.silver <= positions.bronze);
    }
}
