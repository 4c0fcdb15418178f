//! How large pages get.

use std::time::Instant;

use crate::cli::fixture::Place;

use super::history::Search;
use super::html::Page;

/// Bytes of the page of a search of 800 programs of 8 kB each, and what it took to write.
fn page_of_800(rewrites: bool) -> usize {
    let place = Place::new();
    let search = Search {
        nodes: 800,
        lines: 120,
        rewrites,
        ..Search::default()
    };
    search.record(&place);
    let program = search.made()[700].lines.join("\n").len();
    assert!((7_000..12_000).contains(&program), "{program} bytes");
    let started = Instant::now();
    let path = Search::report(&place, &["last"]);
    let took = started.elapsed();
    let html = std::fs::read_to_string(path).unwrap();
    let page = Page::read(&html);
    assert_eq!(page.payload(1)["nodes"].as_array().unwrap().len(), 800);
    #[expect(clippy::print_stdout, reason = "for docs/reports.md")]
    {
        println!(
            "800 programs of {program} bytes, rewrites: {rewrites}: {} bytes in {took:?}",
            html.len()
        );
    }
    html.len()
}

#[test]
fn a_page_about_800_programs_is_a_few_megabytes() {
    assert!(page_of_800(false) < 2_500_000);
    // At worst no program has a line in common with another.
    assert!(page_of_800(true) < 5_500_000);
}

#[test]
fn a_very_long_run_is_thinned_and_its_figures_count_all() {
    let place = Place::new();
    let search = Search {
        nodes: 5_000,
        lines: 3,
        ..Search::default()
    };
    search.record(&place);
    let html = std::fs::read_to_string(Search::report(&place, &["last"])).unwrap();
    let page = Page::read(&html);
    let payload = page.payload(1);
    let nodes = payload["nodes"].as_array().unwrap();
    assert!((1_500..2_100).contains(&nodes.len()), "{}", nodes.len());
    let made = search.made();
    let best = made.iter().filter(|node| node.score.is_some());
    let best = best.min_by(|a, b| a.score.partial_cmp(&b.score).unwrap()).unwrap();
    let mut on_the_way = best;
    loop {
        assert!(
            nodes.iter().any(|node| node["id"] == on_the_way.id.as_str()),
            "step {}",
            on_the_way.step
        );
        match on_the_way.parents.first() {
            Some(parent) => on_the_way = &made[*parent],
            None => break,
        }
    }
    let run = &page.by_id("r1").text;
    assert!(run.contains("The run made 5,000 programs") && run.contains(&format!("found it at step {}", best.step)));
    assert!(html.len() < 6_000_000, "{}", html.len());
}
