//! `clade config` and errors of the configuration.

use super::fixture::{Place, finish};

#[test]
fn values_are_shown_with_their_origin() {
    let place = Place::new();
    place.write(
        "clade.toml",
        "[search]\nsteps = 12\n\n[models.qwen]\nprovider = \"openai\"\nendpoint = \"https://host/v1\"\nmodel = \"q\"\n",
    );
    let mut command = place.command(["config", "search.", "--set", "search.workers=3", "--format", "csv"]);
    let outcome = finish(command.env("CLADE_SEARCH_SEED", "9"), "");
    let csv = place.scrub(&outcome.ok());
    for line in [
        "search.steps,12,FOLDER/clade.toml,CLADE_SEARCH_STEPS",
        "search.workers,3,command line (--set),CLADE_SEARCH_WORKERS",
        "search.seed,9,environment variable CLADE_SEARCH_SEED,CLADE_SEARCH_SEED",
        "search.islands,1,default,CLADE_SEARCH_ISLANDS",
        "search.max_tokens,,,CLADE_SEARCH_MAX_TOKENS",
    ] {
        assert!(csv.contains(line), "{line} is not in\n{csv}");
    }
    let models = place.run(["config", "models."]).ok();
    assert!(models.contains("https://host/v1"), "{models}");
    // An address is no place for a password; it is refused and not repeated.
    let refused = place
        .run(["config", "--set", "models.qwen.endpoint=https://user:hunter2@host/v1"])
        .fails(2);
    assert!(
        refused.contains("'models.qwen.endpoint' in command line (--set)"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"), "{refused}");
}

#[test]
fn the_defaults_are_a_file_to_start_from() {
    let place = Place::new();
    let defaults = place.run(["config", "--defaults"]).ok();
    place.write("clade.toml", &defaults);
    let from_file = place.run(["config", "search.steps", "--format", "json"]).ok();
    assert!(from_file.contains("clade.toml"), "{from_file}");
}

#[test]
fn the_guide_holds_the_defaults() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let guide = read("docs/router.md");
    assert!(
        guide.contains(&format!("```toml\n{}```", read("configs/router.toml"))),
        "docs/router.md: copy configs/router.toml into its toml block"
    );
    let guide = read("docs/configuration.md");
    let (_, copy) = guide.split_once("```toml\n").unwrap();
    let (copy, _) = copy.split_once("```").unwrap();
    assert!(
        copy == read("configs/default.toml"),
        "docs/configuration.md: copy configs/default.toml into its toml block"
    );
}

#[test]
fn mistakes_name_key_and_origin() {
    let place = Place::new();
    place.write("clade.toml", "[search]\nstepz = 12\n");
    let error = place.scrub(&place.run(["runs"]).fails(2));
    assert_eq!(
        error,
        "error: unknown key 'search.stepz' in FOLDER/clade.toml:2; did you mean 'search.steps'?\n"
    );
    std::fs::remove_file(place.path().join("clade.toml")).unwrap();

    let mut command = place.command(["runs"]);
    let error = finish(command.env("CLADE_SEARCH_STEPS", "many"), "").fails(2);
    assert_eq!(
        error,
        "error: 'search.steps' in environment variable CLADE_SEARCH_STEPS: invalid type: found string \"many\", expected u64\n"
    );
    let error = place.run(["runs", "--config", "nowhere.toml"]).fails(2);
    assert!(
        error.starts_with("error: cannot read the configuration file nowhere.toml: "),
        "{error}"
    );
    let error = place.run(["runs", "--log", "loud=="]).fails(2);
    assert!(error.contains("log.level 'loud=='"), "{error}");
}
