//! The draw: priorities, lotteries, reproducibility.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::draw::*;
use super::rows::PolicyRow;
use crate::operators::Operator;

fn row(operator: Operator, parent: Option<&str>, weight: f64) -> PolicyRow {
    PolicyRow {
        operator,
        parent_id: parent.map(Into::into),
        parent2_id: None,
        island: None,
        weight,
        operator_weight: None,
        priority: 0.0,
        parent_step: None,
        parent2_step: None,
    }
}

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

/// How often each (operator, parents) comes out of 4,000 draws.
fn frequencies(rows: &[PolicyRow]) -> std::collections::BTreeMap<(Operator, Vec<String>), f64> {
    let mut counts = std::collections::BTreeMap::new();
    let mut rng = rng(7);
    for _ in 0..4_000 {
        let draw = draw(rows, &mut rng).unwrap().unwrap();
        *counts.entry((draw.operator, draw.parents)).or_insert(0.0) += 1.0 / 4_000.0;
    }
    counts
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!(draw(&[], &mut rng(1)).unwrap(), None);
    let alone = [
        row(Operator::Crossover, Some("a"), 1.0),
        row(Operator::Crossover, Some("a"), 1.0),
    ];
    assert_eq!(
        draw(&alone, &mut rng(1)).unwrap(),
        None,
        "a crossover needs two parents"
    );
}

#[test]
fn the_highest_priority_is_drawn_from() {
    let mut rows = vec![row(Operator::Draft, None, 1.0), row(Operator::Improve, Some("a"), 1.0)];
    rows[0].priority = -1.0;
    assert_eq!(draw(&rows, &mut rng(1)).unwrap().unwrap().operator, Operator::Improve);
    rows[0].priority = 5.0;
    let drawn = draw(&rows, &mut rng(1)).unwrap().unwrap();
    assert_eq!(
        (drawn.operator, drawn.parents, drawn.priority),
        (Operator::Draft, vec![], 5.0)
    );
}

#[test]
fn a_crossover_without_partners_gives_way_to_lower_priorities() {
    let mut rows = vec![
        row(Operator::Crossover, Some("a"), 1.0),
        row(Operator::Improve, Some("a"), 1.0),
    ];
    rows[0].priority = 2.0;
    assert_eq!(draw(&rows, &mut rng(1)).unwrap().unwrap().operator, Operator::Improve);
}

#[test]
fn weights_are_honoured() {
    let mut rows = vec![
        row(Operator::Improve, Some("a"), 1.0),
        row(Operator::Improve, Some("b"), 3.0),
        row(Operator::Improve, Some("c"), 0.0),
        row(Operator::Debug, Some("d"), 4.0),
    ];
    let found = frequencies(&rows);
    let of = |found: &std::collections::BTreeMap<(Operator, Vec<String>), f64>, operator, parent: &str| {
        found.get(&(operator, vec![parent.to_owned()])).copied().unwrap_or(0.0)
    };
    assert!((of(&found, Operator::Improve, "a") - 0.125).abs() < 0.03);
    assert!((of(&found, Operator::Improve, "b") - 0.375).abs() < 0.03);
    assert_eq!(
        of(&found, Operator::Improve, "c"),
        0.0,
        "weight 0 is never drawn beside others"
    );
    assert!(
        (of(&found, Operator::Debug, "d") - 0.5).abs() < 0.03,
        "default operator weight is the sum"
    );

    for row in &mut rows {
        row.operator_weight = Some(if row.operator == Operator::Debug { 0.1 } else { 0.9 });
    }
    assert!((of(&frequencies(&rows), Operator::Debug, "d") - 0.1).abs() < 0.03);
}

#[test]
fn all_zero_weights_are_equal_chances() {
    let rows = [
        row(Operator::Improve, Some("a"), 0.0),
        row(Operator::Improve, Some("b"), 0.0),
    ];
    let drawn = draw(&rows, &mut rng(1)).unwrap().unwrap();
    assert!(drawn.candidates.iter().all(|candidate| candidate.probability == 0.5));
}

#[test]
fn huge_weights_stay_probabilities() {
    let rows = [
        row(Operator::Improve, Some("a"), f64::MAX),
        row(Operator::Improve, Some("b"), f64::MAX),
    ];
    let drawn = draw(&rows, &mut rng(1)).unwrap().unwrap();
    assert!(drawn.candidates.iter().all(|candidate| candidate.probability == 0.5));
}

#[test]
fn crossover_takes_two_parents_without_replacement() {
    let rows = [
        row(Operator::Crossover, Some("a"), 8.0),
        row(Operator::Crossover, Some("b"), 1.0),
        row(Operator::Crossover, Some("c"), 1.0),
    ];
    let found = frequencies(&rows);
    let lottery = Lottery::new(&rows).unwrap().unwrap();
    for first in ["a", "b", "c"] {
        for second in ["a", "b", "c"] {
            let expected = lottery.probability_of(Operator::Crossover, &[first, second]);
            let key = (Operator::Crossover, vec![first.to_owned(), second.to_owned()]);
            assert!(
                (found.get(&key).copied().unwrap_or(0.0) - expected).abs() < 0.03,
                "{first} {second}"
            );
        }
    }
    assert_eq!(lottery.probability_of(Operator::Crossover, &["a", "a"]), 0.0);
}

#[test]
fn a_pair_named_by_the_policy_is_kept() {
    let mut rows = [row(Operator::Crossover, Some("a"), 1.0)];
    rows[0].parent2_id = Some("b".into());
    let drawn = draw(&rows, &mut rng(1)).unwrap().unwrap();
    assert_eq!(drawn.parents, ["a", "b"]);
    assert_eq!(drawn.numbers.len(), 2, "one number for the operator, one for the pair");
}

#[test]
fn operator_weights_must_agree() {
    let mut rows = [
        row(Operator::Improve, Some("a"), 1.0),
        row(Operator::Improve, Some("b"), 1.0),
    ];
    rows[0].operator_weight = Some(0.5);
    let error = draw(&rows, &mut rng(1)).unwrap_err();
    insta::assert_snapshot!(error, @"the rows of operator improve give different values for operator_weight; it is one value for an operator, or NULL in all its rows");
}

#[test]
fn a_record_is_bounded_and_reads_back() {
    let rows: Vec<PolicyRow> = (0..1_000)
        .map(|index| row(Operator::Improve, Some(&format!("n{index:04}")), 1.0))
        .collect();
    let record = draw(&rows, &mut rng(3)).unwrap().unwrap().record();
    assert!(record.candidates.len() <= 9);
    assert_eq!(record.candidate_count, 1_000);
    assert!((record.effective_candidates - 1_000.0).abs() < 1e-6);
    assert!(
        record
            .candidates
            .iter()
            .any(|candidate| candidate.parent_id == record.parents[0])
    );
    let json = serde_json::to_string(&record).unwrap();
    assert!(json.len() < 2_000, "{json}");
    let read: DrawRecord = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (read.operator, read.parents, read.candidates),
        (record.operator, record.parents, record.candidates)
    );
}

#[test]
fn a_seed_always_draws_the_same() {
    let rows: Vec<PolicyRow> = (0..9)
        .map(|index| row(Operator::Improve, Some(&format!("n{index}")), f64::from(index)))
        .collect();
    let mut rng = rng(42);
    let parents: Vec<String> = (0..8)
        .map(|_| draw(&rows, &mut rng).unwrap().unwrap().parents.remove(0))
        .collect();
    insta::assert_snapshot!(parents.join(" "), @"n6 n5 n5 n8 n1 n6 n3 n4");
}

#[test]
fn the_parents_of_a_crossover_are_of_one_island() {
    let on = |parent: &str, island: i64| PolicyRow {
        island: Some(island),
        ..row(Operator::Crossover, Some(parent), 1.0)
    };
    // "v" visits island 1; "lone" has nobody to meet.
    let rows = [on("a", 0), on("v", 0), on("v", 1), on("b", 1), on("lone", 2)];
    let mut seen = std::collections::BTreeMap::new();
    let mut rng = rng(3);
    for _ in 0..400 {
        let drawn = draw(&rows, &mut rng).unwrap().unwrap();
        *seen.entry((drawn.island, drawn.parents.join("+"))).or_insert(0) += 1;
    }
    let pairs: Vec<String> = seen
        .keys()
        .map(|(island, parents)| format!("{}:{parents}", island.unwrap()))
        .collect();
    assert_eq!(pairs.join(" "), "0:a+v 0:v+a 1:b+v 1:v+b");
    let lottery = Lottery::new(&rows).unwrap().unwrap();
    let probability = |parents: &[&str]| lottery.probability_of(Operator::Crossover, parents);
    assert_eq!(probability(&["a", "v"]), 0.25);
    assert_eq!(probability(&["v", "b"]), 0.25);
    assert_eq!(probability(&["a", "b"]), 0.0);
    assert_eq!(lottery.parent_probability(Operator::Crossover, "v"), 0.5);
}

#[test]
fn ids_do_not_change_what_a_seed_draws() {
    let rows = |name: fn(i64) -> String| -> Vec<PolicyRow> {
        (0..9)
            .map(|step| PolicyRow {
                parent_step: Some(step),
                ..row(Operator::Improve, Some(&name(step)), 1.0)
            })
            .collect()
    };
    let (up, down) = (rows(|step| format!("n{step}")), rows(|step| format!("n{}", 9 - step)));
    for seed in 0..20 {
        let first = draw(&up, &mut rng(seed)).unwrap().unwrap().parents.remove(0);
        let second = draw(&down, &mut rng(seed)).unwrap().unwrap().parents.remove(0);
        let step = |rows: &[PolicyRow], id: &str| {
            rows.iter()
                .find(|row| row.parent_id.as_deref() == Some(id))
                .unwrap()
                .parent_step
        };
        assert_eq!(step(&up, &first), step(&down, &second));
    }
}

fn policy_row() -> impl Strategy<Value = PolicyRow> {
    let operator = proptest::sample::select(Operator::ALL.to_vec());
    let island = proptest::option::of(0..3_i64);
    (
        operator,
        "[a-e]",
        proptest::option::of("[f-h]"),
        island,
        0.0..10.0_f64,
        0..3_u8,
    )
        .prop_map(|(operator, parent, second, island, weight, priority)| PolicyRow {
            operator,
            parent_id: (operator != Operator::Draft).then(|| parent.into()),
            parent2_id: second.filter(|_| operator == Operator::Crossover).map(Into::into),
            island: island.filter(|_| operator != Operator::Draft),
            weight,
            operator_weight: None,
            priority: f64::from(priority),
            parent_step: None,
            parent2_step: None,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_does_not_matter(rows in proptest::collection::vec(policy_row(), 0..12), seed: u64, turn in 0_usize..12) {
        let drawn = draw(&rows, &mut rng(seed)).unwrap();
        let mut turned = rows.clone();
        turned.rotate_left(turn.min(rows.len()));
        turned.reverse();
        prop_assert_eq!(draw(&turned, &mut rng(seed)).unwrap(), drawn);
    }

    #[test]
    fn what_is_drawn_was_offered(rows in proptest::collection::vec(policy_row(), 0..12), seed: u64) {
        if let Some(drawn) = draw(&rows, &mut rng(seed)).unwrap() {
            prop_assert_eq!(drawn.parents.len(), drawn.operator.arity());
            let parents: Vec<&str> = drawn.parents.iter().map(String::as_str).collect();
            let lottery = Lottery::new(&rows).unwrap().unwrap();
            prop_assert!(lottery.probability_of(drawn.operator, &parents) > 0.0);
            let total: f64 = drawn.candidates.iter().map(|candidate| candidate.probability).sum();
            prop_assert!(drawn.candidates.is_empty() || (total - 1.0).abs() < 1e-9);
            if let [first, second] = parents[..] {
                prop_assert!(first != second);
                let lives = |id: &str| drawn.candidates.iter().any(|c| c.parent_id == id && c.island == drawn.island);
                let is_pair = drawn.candidates.iter().any(|c| c.parent_id == first && c.parent2_id == Some(second));
                prop_assert!(is_pair || (lives(first) && lives(second)));
            }
        }
    }
}
