//! Pages about suites.

use clade_catalog::{Rows, Store, StoreOptions, Txn, Value};

use crate::cli::fixture::Place;

use super::browser::Browser;
use super::history::Search;
use super::html::Page;

/// Searches of suite s: two of abalone, one of wine; the second of wine could not begin, and there is no task cars.
fn searches(nodes: usize) -> [Search; 3] {
    let abalone = Search {
        run_id: "s.abalone.1",
        has_memory: true,
        nodes,
        ..Search::default()
    };
    let again = Search {
        run_id: "s.abalone.2",
        seed: 2,
        is_graded: false,
        ..abalone.clone()
    };
    let wine = Search {
        run_id: "s.wine.1",
        task_id: "wine".to_owned(),
        title: "Wine".to_owned(),
        has_memory: false,
        seed: 3,
        status: "failed",
        ..abalone.clone()
    };
    [abalone, again, wine]
}

/// A place with suite s of three tasks, twice each.
fn with_suite(nodes: usize) -> (Place, [Search; 3]) {
    let place = Place::new();
    let searches = searches(nodes);
    for search in &searches {
        search.record(&place);
    }
    let moment = |seconds: i64| Value::Timestamp(1_764_400_000_000_000 + seconds * 1_000_000);
    let mut suites = Rows::new("bench.suites").unwrap();
    suites
        .push([
            ("suite_id", "s".into()),
            ("definition", "mine.toml".into()),
            (
                "tasks",
                Value::List(["abalone", "wine", "cars"].map(str::to_owned).to_vec()),
            ),
            ("repeats", 2.into()),
            ("seed", 3.into()),
            ("policy", "openmle_evo".into()),
            ("policy_sql", "SELECT 1".into()),
            ("model", "evolver".into()),
            ("sandbox", "native".into()),
            ("options", "{}".into()),
            ("settings", "{}".into()),
            ("runs_at_once", 2.into()),
            ("status", "finished".into()),
            ("engine_version", "0.1.0".into()),
            ("created_at", moment(0)),
            ("finished_at", moment(7_200)),
        ])
        .unwrap();
    let mut runs = Rows::new("bench.suite_runs").unwrap();
    for (task, repeat, status, error) in [
        ("abalone", 1, "planned", None),
        ("abalone", 2, "planned", None),
        ("wine", 1, "planned", None),
        ("wine", 2, "not_started", Some("the metric of task 'wine' is gone")),
        ("cars", 1, "task_missing", None),
        ("cars", 2, "task_missing", None),
    ] {
        runs.push([
            ("run_id", format!("s.{task}.{repeat}").into()),
            ("suite_id", "s".into()),
            ("task_id", task.into()),
            ("repeat", repeat.into()),
            ("seed", (100 + repeat).into()),
            ("status", status.into()),
            ("error", error.map(str::to_owned).into()),
            ("updated_at", moment(0)),
        ])
        .unwrap();
    }
    // Scores begin near 2.6 and fall: the first drafts win bronze, what comes of them silver.
    let mut board = Rows::new("gym.leaderboards").unwrap();
    for (rank, score) in (1i64..).zip([1.0, 2.55, 2.6, 2.7, 2.72, 2.74, 2.76, 2.78, 2.8, 3.0]) {
        board
            .push([
                ("task_id", "abalone".into()),
                ("package_hash", "p1".into()),
                ("rank", rank.into()),
                ("score", score.into()),
            ])
            .unwrap();
    }
    let mut txn = Txn::new();
    txn.append("bench.suites", suites);
    txn.append("bench.suite_runs", runs);
    txn.append("gym.leaderboards", board);
    let store = Store::open(place.path().join("clade-store"), StoreOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { store.commit(txn).await.unwrap() });
    drop(store);
    (place, searches)
}

fn page(place: &Place) -> Page {
    Page::read(&std::fs::read_to_string(Search::report(place, &["s"])).unwrap())
}

/// One value of a query on the store.
fn value(place: &Place, sql: &str) -> String {
    let printed = place.run(["sql", "-c", sql, "--format", "csv"]).ok();
    printed.lines().nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_page_has_everything_about_a_suite() {
    let (place, searches) = with_suite(40);
    let page = page(&place);
    let head = &page.by_id("suite").text;
    for fact in [
        "6 searches: 3 tasks, 2 times each, with policy openmle_evo and model evolver",
        "2 finished, 2 failed, 2 without the task",
        "mine.toml",
        "120",
    ] {
        assert!(head.contains(fact), "{fact} is not in {head}");
    }

    // Every search has its row in the order of the tasks, and leads to its part.
    let rows = page.rows_of("suite-searches");
    let states: Vec<[&str; 4]> = rows
        .iter()
        .map(|row| [row[0].as_str(), row[1].split(' ').next().unwrap(), &row[3], &row[4]])
        .collect();
    assert_eq!(
        states,
        [
            ["1", "abalone", "1", "finished: steps"],
            ["2", "abalone", "2", "finished: steps"],
            ["3", "wine", "1", "failed: steps"],
            ["4", "wine", "2", "not started"],
            ["5", "cars", "1", "task missing"],
            ["6", "cars", "2", "task missing"],
        ]
    );
    assert_eq!(
        (rows[0][7].as_str(), rows[0][8].as_str()),
        ("2.125", "silver medal 2 of 11")
    );
    assert_eq!(rows[1][7], "–", "it was not graded");
    let links: Vec<&str> = page
        .inside("suite-searches")
        .map(|element| element.attribute("href"))
        .filter(|href| !href.is_empty())
        .collect();
    assert_eq!(links, ["#r1", "#r2", "#r3"]);
    for (number, search) in (1..).zip(&searches) {
        let part = &page.by_id(&format!("r{number}")).text;
        assert!(part.contains(search.run_id), "{}", search.run_id);
        assert_eq!(page.payload(number)["nodes"].as_array().unwrap().len(), 40);
    }
    let faults = page.rows_of("suite-faults");
    let faults: Vec<[&str; 2]> = faults.iter().map(|row| [row[0].as_str(), row[4].as_str()]).collect();
    assert_eq!(faults[1], ["4", "the metric of task 'wine' is gone"]);
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert!(faults[2][1].contains("clade task add"));

    // Tasks over their repeats.
    let tasks = page.rows_of("suite-tasks");
    assert_eq!(tasks.len(), 2);
    assert_eq!((tasks[0][3].as_str(), tasks[0][4].as_str()), ("2 of 2", "1"));
    let spread = value(
        &place,
        "SELECT std_validation_score FROM bench.by_task WHERE task_id = 'abalone'",
    );
    let spread: f64 = spread.parse().unwrap();
    let shown: f64 = tasks[0][5].split_once(" ± ").unwrap().1.parse().unwrap();
    assert!((spread - shown).abs() < 1e-4, "{spread} and {shown}");
    assert_eq!((tasks[0][6].as_str(), tasks[0][10].as_str()), ("2.125", "1"));
    assert_eq!(page.rows_of("suite-modalities").len(), 1);
    assert_eq!(page.rows_of("suite-repeats").len(), 2);

    // Two lines of medals, one chart by step and one by time for each task that was searched.
    let lines = |id: &str| {
        page.inside(id)
            .filter(|element| element.name == "path" && element.attribute("d").contains('H'))
            .filter(|element| !element.attribute("d").starts_with("M0 5"))
            .map(|element| element.attribute("d").to_owned())
            .collect::<Vec<String>>()
    };
    let medals = lines("suite-medals");
    assert_eq!(medals.len(), 2);
    assert!(medals.iter().all(|line| line.contains('V')), "{medals:?}");
    let figures: Vec<&str> = page
        .inside("suite-curves")
        .filter(|element| element.attribute("role") == "img")
        .map(|figure| figure.attribute("aria-label"))
        .collect();
    assert_eq!(
        figures,
        [
            "The best mae so far of 2 runs",
            "The best mae so far of 2 runs",
            "The best mae so far of 1 run",
            "The best mae so far of 1 run",
        ]
    );
    assert_eq!(lines("suite-curves").len(), 6);
}

#[test]
fn the_spend_and_the_failures_of_a_suite_are_those_of_its_searches() {
    let (place, searches) = with_suite(40);
    let outside = Search {
        run_id: "other",
        has_memory: true,
        ..Search::default()
    };
    outside.record(&place);
    let page = page(&place);
    let made: Vec<_> = searches.iter().map(Search::made).collect();
    let summaries: usize = made[..2]
        .iter()
        .map(|made| made.iter().filter(|node| !node.parents.is_empty()).count())
        .sum();
    let spend = page.rows_of("suite-spend");
    let requests: Vec<[&str; 2]> = spend.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    let (memory, all) = (summaries.to_string(), (120 + summaries).to_string());
    assert_eq!(
        requests,
        [
            ["evolver programs", "120"],
            ["Memory model summaries", memory.as_str()],
            ["All", all.as_str()],
        ]
    );
    let tokens = value(
        &place,
        "SELECT sum(s.tokens) FROM bench.spend s JOIN bench.suite_runs r ON r.run_id = s.run_id",
    );
    assert_eq!(spend[2][2].replace(',', ""), tokens);
    assert_eq!(tokens, (120 * 1_200 + summaries * 350).to_string());
    assert!(page.by_id("suite-spend").text.contains("A medal took"));

    let failed: usize = made.iter().flatten().filter(|node| node.score.is_none()).count();
    let failures = page.rows_of("suite-failures");
    assert_eq!(failures.len(), 1);
    assert!(failures[0][0].starts_with("ValueError: fit"), "{failures:?}");
    assert_eq!(failures[0][1..4], [failed.to_string(), "3".to_owned(), "2".to_owned()]);
}

#[test]
fn a_suite_with_more_programs_than_a_page_holds_says_what_is_left_out() {
    let (place, _) = with_suite(1_800);
    let page = page(&place);
    // The best search of each task first: the graded one of abalone, and the only one of wine.
    let note = &page.by_id("suite-left-out").text;
    assert!(
        note.starts_with("2 of the 3 searches") && note.contains("4,000"),
        "{note}"
    );
    let parts: Vec<&str> = page
        .named("section")
        .map(|section| section.attribute("id"))
        .filter(|id| id.starts_with('r'))
        .collect();
    assert_eq!(parts, ["r1", "r3"]);
    let rows = page.rows_of("suite-searches");
    assert!(rows[1][1].contains("no part on this page"), "{:?}", rows[1]);
    assert!(page.by_id("suite").text.contains("5,400"), "figures count all");
    assert!(page.elements.iter().all(|element| element.attribute("id") != "texts-2"));
}

#[test]
fn a_name_is_that_of_a_suite_or_of_a_run() {
    let (place, searches) = with_suite(5);
    let outcome = place.run(["report", "s"]);
    assert_eq!(outcome.stderr, "wrote a page about suite s to report.html\n");
    // A beginning is of a run, and only the whole name is of a suite.
    let outcome = place.run(["report", "s.w"]);
    assert_eq!(outcome.stderr, "wrote a page about 1 run to report.html\n");
    let unknown = place.run(["report", "nothing"]).fails(1);
    for part in [
        "there is no run and no suite 'nothing'",
        "the newest runs are:",
        "s.abalone.1  abalone, finished",
        "the newest suites are:\n  s  openmle_evo, finished",
    ] {
        assert!(unknown.contains(part), "{part} is not in {unknown}");
    }
    let unknown = place.run(["report", "suite/s.wine.1"]).fails(1);
    assert!(unknown.contains("there is no suite 's.wine.1'"), "{unknown}");
    for both in [["s", "s.wine.1"], ["last", "suite/s"]] {
        let error = place.run(["report"].into_iter().chain(both)).fails(2);
        assert!(error.contains("runs or about one suite"), "{error}");
    }
    // A suite goes before a run of the same name, which is said.
    Search {
        run_id: "s",
        ..searches[0].clone()
    }
    .record(&place);
    let outcome = place.run(["report", "s"]);
    assert_eq!(
        outcome.stderr,
        "s is a suite and a run; the page is about the suite, run/s is the run\nwrote a page about suite s to report.html\n"
    );
    for (name, what) in [("run/s", "1 run"), ("suite/s", "suite s"), ("last", "1 run")] {
        let told = place.run(["report", name]).stderr;
        assert!(
            told.ends_with(&format!("wrote a page about {what} to report.html\n")),
            "{told}"
        );
    }
}

#[test]
fn a_page_about_a_suite_works_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let (place, _) = with_suite(40);
    let page = Search::report(&place, &["s"]);
    // A click meets nothing that still glides to where a link led.
    browser.call(
        "Emulation.setEmulatedMedia",
        serde_json::json!({"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}),
    );
    for width in [400, 1400] {
        browser.resize(width, 900);
        browser.open(&page);
        assert_eq!(browser.problems(), Vec::<String>::new());
        let over = browser.value("document.scrollingElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(over, 0, "the page is wider than {width} pixels");
    }
    let drawn = "[...document.querySelectorAll('#suite table')].filter((table) => table.getBoundingClientRect().height > 30).length";
    assert_eq!(browser.value(drawn), 7);
    let lines =
        "[...document.querySelectorAll('#suite .plot path.line')].filter((line) => line.getTotalLength() > 10).length";
    assert_eq!(browser.value(lines), 8);
    // Parts are closed until a link leads to them; a program of one opens beside the page.
    assert_eq!(
        browser.value("document.querySelectorAll('details.body[open]').length"),
        0
    );
    browser.click("#suite-searches a[href='#r3']");
    browser.until("location.hash === '#r3'");
    browser.until("document.querySelector('#r3 details.body').open");
    browser.click("#r3 .tree a[data-n='4'] circle");
    browser.until("!document.getElementById('detail').hidden && document.querySelector('#panel .source') !== null");
    assert_eq!(
        browser.value("document.getElementById('detail-title').textContent"),
        "Step 5 draft"
    );
    browser.click("#detail-close");
    browser.click("#suite-curves .legend a");
    browser.until("location.hash === '#q1'");
    assert_eq!(browser.problems(), Vec::<String>::new());
}
