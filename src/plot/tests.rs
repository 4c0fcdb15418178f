#![allow(clippy::unwrap_used)]

use super::*;

fn run() -> PlotRun {
    PlotRun {
        run_id: "0193b2c4-7a1e-7cc0-9d1f-000000000001".into(),
        task: "abalone-age".into(),
        policy: "openmle_evo".into(),
        model: "evolver".into(),
        metric: "mae".into(),
        higher_is_better: false,
        status: "finished".into(),
    }
}

/// A search that looks like one: drafts first, then parents near the best, a share of failures, slow gains.
fn history(count: u64) -> Vec<PlotNode> {
    let mut state = 12_345_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(u32::MAX >> 1)
    };
    let mut nodes: Vec<PlotNode> = Vec::new();
    for step in 1..=count {
        let mut by_score: Vec<&PlotNode> = nodes.iter().filter(|node| !node.failed).collect();
        by_score.sort_by(|a, b| a.score.unwrap().total_cmp(&b.score.unwrap()));
        let pick = |share: f64| {
            let top = by_score.len().min(12);
            by_score
                .get((share * share * top as f64) as usize)
                .map(|node| (*node).clone())
        };
        let buggy: Vec<&PlotNode> = nodes.iter().rev().take(15).filter(|node| node.failed).collect();
        let draw = random();
        let (operator, parent, parent2) = if step <= 3 || draw < 0.12 || by_score.len() < 2 {
            ("draft", None, None)
        } else if draw < 0.27 && !buggy.is_empty() {
            (
                "debug",
                Some(buggy[(random() * buggy.len() as f64) as usize % buggy.len()].clone()),
                None,
            )
        } else if draw < 0.45 {
            ("crossover", pick(random()), pick(random()))
        } else {
            ("improve", pick(random()), None)
        };
        let failed = random() < 0.22;
        let base = parent
            .as_ref()
            .and_then(|node| node.score)
            .unwrap_or(2.6 + random() * 0.4);
        let outlier = random() > 0.985;
        let score = if outlier {
            base * 40.0
        } else {
            base + (random() - 0.42) * 0.12 * (2.0 / (1.0 + step as f64 / 60.0)).max(0.4)
        };
        nodes.push(PlotNode {
            node_id: format!("node{step:05}"),
            step,
            operator: operator.into(),
            parent_id: parent.map(|node| node.node_id),
            parent2_id: parent2.map(|node| node.node_id),
            score: (!failed).then_some(score),
            failed,
            status: if !failed {
                "success"
            } else if random() < 0.7 {
                "code_execution_error"
            } else {
                "timeout"
            }
            .into(),
        });
    }
    nodes
}

/// Colours and counts of elements: `circle rgb`, `polyline …`.
fn count(svg: &str, needle: &str) -> usize {
    svg.matches(needle).count()
}

#[test]
fn every_node_is_drawn_in_both_panels() {
    for size in [0, 1, 2, 40, 800] {
        let nodes = history(size);
        let svg = render(&run(), &nodes).unwrap();
        if let Ok(folder) = std::env::var("CLADE_TEST_PLOTS") {
            std::fs::write(format!("{folder}/plot{size}.svg"), &svg).unwrap();
        }
        let history = History::new(false, nodes);
        let scored = history.scored().count();
        let failed = history.nodes.len() - scored;
        let range = scale::ScoreRange::of(&history.scored().map(|(_, s)| s).collect::<Vec<_>>(), false);
        let beyond = history.scored().filter(|(_, score)| !range.contains(*score)).count();
        let rings = if history.best.is_some() { 2 } else { 0 };
        // Legend: a dot for each operator that is there, and a ring. Each node of the best path has three more circles.
        let operators = style::OPERATORS
            .iter()
            .filter(|(name, _)| history.nodes.iter().any(|node| node.operator == *name));
        let legend = operators.count() + usize::from(history.best.is_some());
        let expected = legend + (scored - beyond) + scored + 3 * history.best_path.len() + rings;
        assert_eq!(count(&svg, "<circle"), expected, "{size} nodes");
        assert_eq!(count(&svg, "<polygon"), beyond);
        assert!(failed == 0 || svg.contains(&format!("{failed} failed")));
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    }
}

#[test]
fn the_best_is_the_first_best_and_its_path_leads_to_a_root() {
    let node = |id: &str, step, parent: Option<&str>, score: Option<f64>| PlotNode {
        node_id: id.into(),
        step,
        operator: "improve".into(),
        parent_id: parent.map(Into::into),
        parent2_id: None,
        score,
        failed: false,
        status: "success".into(),
    };
    let nodes = vec![
        node("d", 4, Some("c"), Some(0.5)),
        node("a", 1, None, Some(0.9)),
        node("b", 2, Some("a"), Some(f64::NAN)),
        node("c", 3, Some("b"), Some(0.5)),
        node("e", 5, Some("missing"), Some(f64::NEG_INFINITY)),
        node("f", 6, Some("f"), None),
    ];
    let mut sorted = nodes.clone();
    sorted.sort_by_key(|node| node.step);
    let low = History::new(false, sorted.clone());
    let ids = |history: &History| -> Vec<String> {
        history
            .best_path
            .iter()
            .map(|i| history.nodes[*i].node_id.clone())
            .collect()
    };
    assert_eq!(ids(&low), ["a", "b", "c"], "ties go to the earliest; a NaN never wins");
    assert_eq!(ids(&History::new(true, sorted)), ["a"]);
    render(&run(), &nodes).unwrap();
}

#[test]
fn lanes_never_share_a_place() {
    for size in [40, 800] {
        let history = History::new(false, history(size));
        let lanes = lanes::Lanes::of(&history);
        let mut places: Vec<(usize, u64)> = history
            .nodes
            .iter()
            .enumerate()
            .map(|(i, node)| (lanes.lane[i], node.step))
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), history.nodes.len());
        assert!(lanes.count < history.nodes.len());
    }
}

#[test]
fn titles_are_escaped() {
    let mut odd = run();
    odd.task = "a<b> & \"Größe\" 年龄 \u{1}".into();
    odd.metric = "m<1>".into();
    let svg = render(&odd, &history(3)).unwrap();
    assert!(svg.contains("a&lt;b&gt; &amp; &quot;Größe&quot; 年龄"));
    assert!(svg.contains("m&lt;1&gt; (lower is better)"));
    assert!(!svg.contains('\u{1}'));
    let long = PlotRun {
        task: "x".repeat(500),
        ..run()
    };
    assert!(render(&long, &history(3)).unwrap().contains("x…"));
}
