//! Texts that try to be more than texts.

use crate::cli::fixture::Place;

use super::history::Search;
use super::html::Page;

/// Ends elements, begins others, closes attributes, is a template, hides what it is.
pub const HOSTILE: &str = "</script></style></title><img src=x onerror=\"document.title='owned'\"><svg onload=alert(1)>' onclick='alert(2)' \
                           {{ 7 * 7 }}{% raw %}<!-- ]]> &lt;b&gt; \u{202e}gnp.exe\u{1b}[31m\0";

#[test]
fn nothing_in_a_page_comes_from_a_hostile_text() {
    let place = Place::new();
    let harmless = Search {
        nodes: 12,
        ..Search::default()
    };
    let hostile = Search {
        run_id: "02hostile",
        task_id: "a\"><script>alert(3)</script>".to_owned(),
        hostile: HOSTILE,
        ..harmless.clone()
    };
    harmless.record(&place);
    hostile.record(&place);
    let read = |runs: &[&str]| {
        let html = std::fs::read_to_string(Search::report(&place, runs)).unwrap();
        // A page that is read knows its elements and attributes; a hostile one would have others, or overlap.
        (Page::read(&html), html)
    };
    let (page, html) = read(&["02hostile"]);
    let (control, _) = read(&["01report"]);
    let shape = |page: &Page| {
        let elements = page.elements.iter().filter(|element| element.name != "script");
        let names: Vec<String> = elements.map(|element| element.name.clone()).collect();
        names.len()
    };
    // The hostile run has its error besides what the other has.
    assert_eq!(shape(&page), shape(&control) + 1);
    // It is all there, as text.
    let title = &page.by_id("r1-title").text;
    assert!(
        title.contains("</script></style>") && title.contains("{{ 7 * 7 }}"),
        "{title}"
    );
    assert!(!html.contains('\u{202e}') && !html.contains('\u{1b}') && !html.contains('\0'));
    let payload = page.payload(1);
    let first = payload["lines"][0].as_str().unwrap();
    assert!(first.ends_with(HOSTILE), "{first}");
    assert!(payload["nodes"][0]["plan"].as_str().unwrap().contains("onerror"));
}
