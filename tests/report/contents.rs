//! What is in a page.

use std::collections::BTreeMap;

use crate::cli::fixture::Place;

use super::history::{Made, Search};
use super::html::Page;

fn page(place: &Place, runs: &[&str]) -> Page {
    Page::read(&std::fs::read_to_string(Search::report(place, runs)).unwrap())
}

/// The search with its programs, and its page.
fn recorded(search: &Search) -> (Vec<Made>, Page) {
    let place = Place::new();
    search.record(&place);
    (search.made(), page(&place, &[]))
}

#[test]
fn a_page_has_everything_about_a_run() {
    let search = Search::default();
    let (made, page) = recorded(&search);
    let best = made.iter().filter(|node| node.score.is_some());
    let best = best.min_by(|a, b| a.score.partial_cmp(&b.score).unwrap()).unwrap();
    let failed = made.iter().filter(|node| node.score.is_none()).count();
    assert!(failed > 1, "the search has failures");

    let run = page.by_id("r1");
    for fact in [
        "Age of abalone",
        "mae",
        "lower is better",
        "openmle_evo",
        "evolver",
        "40 steps",
        "2 h 0 min in the sandbox",
        "2.125",
        "place 2 of 11",
        "silver medal",
        "01report",
        "12,345",
    ] {
        assert!(run.text.contains(fact), "{fact}");
    }
    assert!(run.text.contains(&format!("found it at step {}", best.step)));
    let first = made.iter().find(|node| node.score.is_some()).unwrap();
    let tiles: Vec<&str> = page
        .inside("r1")
        .filter(|element| element.has_class("value"))
        .map(|tile| tile.text.as_str())
        .collect();
    let gain = first.score.unwrap() - best.score.unwrap();
    assert!(
        tiles.contains(&format!("{gain:+.6}").trim_end_matches('0')),
        "{gain} in {tiles:?}"
    );

    // Every program is in both charts, in the lineage and in the list.
    let circles = |id: &str| {
        page.inside(id)
            .filter(|element| element.attributes.contains_key("data-n"))
            .count()
    };
    assert_eq!(circles("r1-scores"), 2 * made.len());
    let links = page.inside("r1-lineage").filter(|element| element.name == "a").count();
    assert_eq!(links, made.len());
    let rows = page
        .inside("r1-programs")
        .filter(|element| element.name == "tr")
        .count();
    assert_eq!(rows, made.len() + 1);
    let rings = page
        .inside("r1-lineage")
        .filter(|element| element.has_class("ring"))
        .count();
    assert_eq!(rings, 2, "the legend's and the best program's");
    let labels: Vec<&str> = page
        .inside("r1-scores")
        .filter(|element| element.name == "figcaption")
        .map(|axis| axis.text.as_str())
        .collect();
    assert_eq!(labels, ["step", "sandbox time, minutes"]);

    // Tables count what was recorded.
    let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
    made.iter()
        .for_each(|node| *operators.entry(node.operator).or_default() += 1);
    for (operator, count) in operators {
        let row = page
            .inside("r1-operators")
            .find(|element| element.name == "tr" && element.text.starts_with(operator));
        assert!(
            row.is_some_and(|row| row.text.starts_with(&format!("{operator}{count}"))),
            "{operator}"
        );
    }
    let families = page
        .inside("r1-families")
        .filter(|element| element.name == "tr")
        .count();
    assert_eq!(families, 4);
    let failures = &page.by_id("r1-failures").text;
    assert!(
        failures.contains("ValueError: fit") && failures.contains("input contains NaN"),
        "{failures}"
    );
    assert!(page.by_id("r1-budget").text.contains("25 %"));
    assert!(page.by_id("r1-prompts").text.contains("second parent"));
    let draws = page
        .inside("r1-selection")
        .filter(|element| element.name == "tr")
        .count();
    assert_eq!(draws, made.len() + 1);
}

#[test]
fn the_texts_of_a_page_are_those_of_the_store() {
    let search = Search::default();
    let (made, page) = recorded(&search);
    let payload = page.payload(1);
    let lines = payload["lines"].as_array().unwrap();
    for (node, details) in made.iter().zip(payload["nodes"].as_array().unwrap()) {
        assert_eq!(details["id"], node.id.as_str());
        assert_eq!(details["step"], node.step);
        let program = &payload["programs"][details["program"].as_u64().unwrap() as usize];
        let text: Vec<&str> = program
            .as_array()
            .unwrap()
            .iter()
            .map(|line| lines[line.as_u64().unwrap() as usize].as_str().unwrap())
            .collect();
        assert_eq!(text, node.lines);
        let parents: Vec<u64> = details["parents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parent| parent["node"].as_u64().unwrap())
            .collect();
        assert_eq!(
            parents,
            node.parents.iter().map(|parent| *parent as u64).collect::<Vec<_>>()
        );
        assert_eq!(details["shown"].as_array().unwrap().len(), node.parents.len());
        assert_eq!(details["failed"], node.score.is_none());
        assert_eq!(
            details["logs"].as_array().unwrap().len(),
            if node.score.is_none() { 3 } else { 1 }
        );
    }
}

#[test]
fn several_runs_are_compared() {
    let place = Place::new();
    let second = Search {
        run_id: "02report",
        policy: "aira_evo".to_owned(),
        seed: 2,
        nodes: 25,
        is_graded: false,
        ..Search::default()
    };
    let other = Search {
        run_id: "03report",
        task_id: "wine".to_owned(),
        title: "Wine".to_owned(),
        ..second.clone()
    };
    for search in [&Search::default(), &second, &other] {
        search.record(&place);
    }
    // A run that is named twice is shown once.
    let page = page(&place, &["01report", "02", "03", "01"]);
    let overview = page.by_id("overview");
    assert!(overview.text.contains("3 runs on 2 tasks"), "{}", overview.text);
    let rows: Vec<&str> = page
        .inside("overview")
        .filter(|element| element.name == "tr")
        .map(|row| row.text.as_str())
        .collect();
    assert_eq!(rows.len(), 4);
    assert!(
        rows[1].contains("silver medal") && !rows[2].contains("medal"),
        "{rows:?}"
    );
    // The two runs of one task share a chart by steps and one by time; the third has no one to be compared with.
    let figures: Vec<&str> = page
        .inside("overview")
        .filter(|element| element.attribute("role") == "img")
        .map(|figure| figure.attribute("aria-label"))
        .collect();
    assert_eq!(figures, ["The best mae so far of 2 runs"; 2]);
    for run in 1..=3 {
        assert_eq!(page.by_id(&format!("r{run}")).attribute("data-run"), run.to_string());
        assert_eq!(
            page.payload(run)["nodes"].as_array().unwrap().len(),
            if run == 1 { 40 } else { 25 }
        );
    }
}

#[test]
fn runs_without_results_have_pages_too() {
    let empty = Search {
        nodes: 0,
        status: "running",
        ..Search::default()
    };
    let (_, page) = recorded(&empty);
    let text = &page.by_id("r1").text;
    // Nobody conducts it.
    assert!(
        text.contains("interrupted") && text.contains("no program yet") && text.contains("not graded"),
        "{text}"
    );
    let (_, page) = recorded(&Search {
        nodes: 1,
        ..Search::default()
    });
    assert!(page.by_id("r1").text.contains("no better than the first draft"));
    assert!(page.by_id("r1-failures").text.contains("No program failed."));
}

#[test]
fn what_the_memory_model_spent_is_a_line_of_its_own_and_in_the_totals() {
    let search = Search {
        has_memory: true,
        ..Search::default()
    };
    let (made, page) = recorded(&search);
    let summaries = made.iter().filter(|node| !node.parents.is_empty()).count();
    let tokens = made.len() * 1_200 + summaries * 350;
    let cost = made.len() as f64 * 0.01 + summaries as f64 * 0.0025;
    let thousands = |count: usize| format!("{},{:03}", count / 1_000, count % 1_000);
    let cells = |start: &str| -> Vec<String> {
        let rows: Vec<_> = page
            .inside("r1-operators")
            .filter(|element| element.name == "tr" && element.text.starts_with(start))
            .collect();
        assert_eq!(rows.len(), 1, "{start}");
        page.cells(rows[0])
    };
    let memory = cells("Memory model");
    assert_eq!(memory[8..10], [summaries.to_string(), thousands(summaries * 350)]);
    assert_eq!(memory[10], dollars(summaries as f64 * 0.0025));
    let all = cells("All");
    assert_eq!(all[1], made.len().to_string());
    assert_eq!(
        all[8..11],
        [(made.len() + summaries).to_string(), thousands(tokens), dollars(cost)]
    );
    // An operator's row has what was asked for it, and nothing of the memory model.
    let drafts = made.iter().filter(|node| node.operator == "draft").count();
    assert_eq!(cells("draft")[9], thousands(drafts * 1_200));
    let tile = page
        .inside("r1")
        .find(|element| element.has_class("tile") && element.text.trim().starts_with("Cost"))
        .unwrap();
    for part in [
        dollars(cost),
        format!("{} tokens", thousands(tokens)),
        format!(
            "of it {} and {} tokens by the memory model",
            dollars(summaries as f64 * 0.0025),
            thousands(summaries * 350)
        ),
    ] {
        assert!(tile.text.contains(&part), "{part} is not in {}", tile.text);
    }
    // A run that asked none says nothing of it.
    let (_, page) = recorded(&Search::default());
    assert!(!page.by_id("r1").text.to_lowercase().contains("memory model"));
}

fn dollars(amount: f64) -> String {
    let text = format!("${amount:.4}");
    text.strip_suffix("00").unwrap_or(&text).to_owned()
}

#[test]
fn a_run_without_prompts_and_draws_says_so() {
    let place = Place::with_history();
    let page = page(&place, &["last"]);
    let failures = &page.by_id("r1-failures").text;
    assert!(
        failures.contains("value_error") && failures.contains("division by zero"),
        "{failures}"
    );
    assert!(page.by_id("r1-prompts").text.contains("No prompt of this run"));
    assert!(page.by_id("r1-selection").text.contains("No draw of this run"));
}

#[test]
fn a_page_goes_to_a_file_or_to_standard_output() {
    let place = Place::with_history();
    let outcome = place.run(["report"]);
    assert_eq!(outcome.stderr, "wrote a page about 1 run to report.html\n");
    let written = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    let printed = place.run(["report", "01r", "-o", "-"]).ok();
    // All but the minute in which it was made.
    assert_eq!(Page::read(&written).payload(1), Page::read(&printed).payload(1));
    let error = place.run(["report", "nope"]).fails(1);
    assert!(
        error.contains("there is no run and no suite 'nope'") && error.contains("this store has no suite yet"),
        "{error}"
    );
    let error = place.run(["report", "-o", "no/such/folder/a.html"]).fails(1);
    assert!(error.contains("no/such/folder/a.html"), "{error}");
    assert!(
        Place::with_store()
            .run(["report"])
            .fails(1)
            .contains("there is no run yet")
    );
}
