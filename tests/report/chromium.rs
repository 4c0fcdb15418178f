//! Pages in a browser.

use serde_json::json;

use crate::cli::fixture::Place;

use super::browser::Browser;
use super::history::Search;
use super::hostile::HOSTILE;

const RIGHT: u32 = 39;
const UP: u32 = 38;
const ENTER: u32 = 13;
const ESCAPE: u32 = 27;

#[test]
fn a_click_on_a_program_shows_what_changed() {
    let Some(mut browser) = Browser::start() else { return };
    let (place, search) = (Place::new(), Search::default());
    search.record(&place);
    let made = search.made();
    browser.resize(1400, 900);
    browser.open(&Search::report(&place, &["last"]));
    assert_eq!(browser.problems(), Vec::<String>::new());

    let improved = made
        .iter()
        .find(|node| node.operator == "improve" && node.score.is_some())
        .unwrap();
    let parent = &made[improved.parents[0]];
    browser.click(&format!(".tree a[data-n='{}'] circle", improved.step - 1));
    browser.until("!document.getElementById('detail').hidden && document.querySelector('#panel .source') !== null");
    let title = browser.value("document.getElementById('detail-title').textContent");
    assert_eq!(title, format!("Step {} improve", improved.step));
    let side = |kind: &str| {
        format!("[...document.querySelectorAll('#panel tr.{kind} td:last-child')].map((cell) => cell.textContent)")
    };
    let changed = |from: &[String], to: &[String]| -> Vec<String> {
        from.iter()
            .zip(to)
            .filter(|(a, b)| a != b)
            .map(|(a, _)| a.clone())
            .collect()
    };
    assert_eq!(
        browser.value(&side("cut")),
        json!(changed(&parent.lines, &improved.lines))
    );
    assert_eq!(
        browser.value(&side("add")),
        json!(changed(&improved.lines, &parent.lines))
    );

    // The other tabs, and the parents.
    let tab = |browser: &mut Browser, name: &str| {
        browser.click(&format!("#tab-{name}"));
        browser
            .value("document.getElementById('panel').innerText")
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(tab(&mut browser, "program").contains(&improved.lines[0]));
    assert!(tab(&mut browser, "facts").contains(&improved.id));
    assert!(tab(&mut browser, "logs").contains("score Some("));
    assert!(tab(&mut browser, "prompt").contains(&format!("step {}", parent.step)));
    assert!(tab(&mut browser, "draw").contains("25 %"));
    browser.click("#detail-relatives button");
    browser.until(&format!(
        "document.getElementById('detail-title').textContent === 'Step {} {}'",
        parent.step, parent.operator
    ));
    browser.click("#detail-close");
    browser.until("document.getElementById('detail').hidden");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn the_lineage_is_walked_with_the_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let (place, search) = (Place::new(), Search::default());
    search.record(&place);
    browser.resize(1400, 900);
    browser.open(&Search::report(&place, &["last"]));
    // One program is reached with the tab key, the others from it.
    assert_eq!(
        browser.value("document.querySelectorAll('.tree a[tabindex=\"0\"]').length"),
        1
    );
    browser.value("document.querySelector('.tree a[data-n=\"5\"]').focus()");
    browser.press("ArrowRight", RIGHT);
    let focused = |place: usize| format!("document.activeElement.dataset.n === '{place}'");
    browser.until(&focused(6));
    browser.press("ArrowUp", UP);
    browser.until(&focused(search.made()[6].parents[0]));
    browser.press("Enter", ENTER);
    browser.until("!document.getElementById('detail').hidden && document.getElementById('detail').contains(document.activeElement)");
    browser.press("Escape", ESCAPE);
    browser.until("document.getElementById('detail').hidden");
    browser.until(&focused(search.made()[6].parents[0]));
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn a_page_fits_narrow_and_wide_screens_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let place = Place::new();
    let search = Search {
        title: "The age of abalone from measures that are quick to take ".repeat(3),
        task_id: "a-task-with-a-very-long-name-that-has-no-place-to-break-it-anywhere-at-all".to_owned(),
        nodes: 120,
        ..Search::default()
    };
    search.record(&place);
    Search {
        run_id: "02report",
        seed: 3,
        ..search
    }
    .record(&place);
    let page = Search::report(&place, &["01report", "02report"]);
    for scheme in ["light", "dark"] {
        for width in [400, 1000, 1400] {
            browser.resize(width, 900);
            browser.prefer(scheme);
            browser.open(&page);
            let over = browser.value("document.scrollingElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(over, 0, "the page is wider than {width} pixels");
            browser.click("#r1-scores circle[data-n='40']");
            browser.until("!document.getElementById('detail').hidden");
            let over = browser.value("document.scrollingElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(over, 0, "the details are wider than {width} pixels");
            // Text and its ground are far apart: at least 4.5 to 1.
            let contrast = browser.value(CONTRAST);
            assert_eq!(contrast, json!([]), "{scheme}");
            assert_eq!(browser.problems(), Vec::<String>::new());
        }
    }
}

/// Elements with text whose colour is too near to that of their ground.
const CONTRAST: &str = r"(() => {
  const light = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const poor = [];
  for (const element of document.querySelectorAll('main :is(p, td, th, dt, dd, h2, h3, li, span, summary, a), .detail :is(h2, p, button, td, span)')) {
    if (element.closest('svg') || !element.textContent.trim() || element.matches(':disabled')) continue;
    const [text, back] = [light(getComputedStyle(element).color), light(ground(element))];
    const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    if (ratio < 4.5 && !element.matches('.no')) poor.push(`${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)].slice(0, 10);
})()";

#[test]
fn a_page_works_without_javascript() {
    let Some(mut browser) = Browser::start() else { return };
    let (place, search) = (Place::new(), Search::default());
    search.record(&place);
    browser.resize(1400, 900);
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&Search::report(&place, &["last"]));
    let text = browser.value("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("needs JavaScript") && text.contains("Age of abalone") && text.contains("ValueError: fit"));
    assert!(!text.contains("Click one"), "nothing is offered that does not work");
    let drawn = browser.value("[...document.querySelectorAll('.tree circle, .plot .dots circle')].filter((circle) => circle.getBoundingClientRect().width > 3).length");
    assert!(drawn.as_u64().unwrap() >= 3 * 40, "{drawn}");
    // A program leads to its row of the list.
    browser.click(".tree a[data-n='30'] circle");
    browser.until("location.hash === '#r1s31'");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn hostile_texts_do_nothing_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let place = Place::new();
    let search = Search {
        task_id: "a\"><script>alert(3)</script>".to_owned(),
        hostile: HOSTILE,
        nodes: 20,
        ..Search::default()
    };
    search.record(&place);
    browser.resize(1400, 900);
    browser.open(&Search::report(&place, &["last"]));
    let title = browser.value("document.title");
    for number in 0..20 {
        browser.click(&format!(".tree a[data-n='{number}'] circle"));
        browser.until("!document.getElementById('detail').hidden");
        for tab in ["change", "program", "facts", "logs", "prompt", "draw"] {
            browser.click(&format!("#tab-{tab}"));
        }
        browser.click("#detail-close");
    }
    assert_eq!(browser.value("document.title"), title);
    assert_eq!(
        browser.value("document.querySelectorAll('img, iframe, [onerror], [onload], [onclick]').length"),
        0
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn a_page_about_800_programs_opens_and_answers() {
    let Some(mut browser) = Browser::start() else { return };
    let place = Place::new();
    let search = Search {
        nodes: 800,
        lines: 120,
        ..Search::default()
    };
    search.record(&place);
    browser.resize(1400, 900);
    browser.open(&Search::report(&place, &["last"]));
    browser.click(".tree a[data-n='600'] circle");
    browser.until("document.querySelector('#panel .source') !== null");
    let changed = browser.value("document.querySelectorAll('#panel tr.add').length");
    assert!((1..=3).contains(&changed.as_u64().unwrap()), "{changed}");
    assert_eq!(browser.problems(), Vec::<String>::new());
}
