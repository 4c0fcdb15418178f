#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn with_file(text: &str) -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clade.toml"), text).unwrap();
    let sources = Sources {
        folder: Some(folder.path().to_owned()),
        ..Sources::default()
    };
    (folder, sources)
}

fn message(sources: &Sources, folder: Option<&tempfile::TempDir>) -> String {
    let text = sources.load().expect_err("must be refused").to_string();
    match folder {
        Some(folder) => text.replace(&*folder.path().to_string_lossy(), "FOLDER"),
        None => text,
    }
}

#[test]
fn defaults_load_and_every_key_has_its_own_variable() {
    let loaded = Sources::default().load().unwrap();
    let entries = loaded.entries();
    assert!(
        entries
            .iter()
            .any(|entry| entry.key == "search.steps" && entry.origin.as_deref() == Some("default"))
    );
    let mut variables: Vec<String> = entries.iter().map(Entry::variable).collect();
    let count = variables.len();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), count, "two keys share a variable");
}

#[test]
fn commented_defaults_are_valid_too() {
    let is_setting = |line: &str| {
        let key = |c: char| c.is_ascii_lowercase() || c == '_';
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(name, _)| name.chars().all(key))
    };
    let uncommented: Vec<&str> = DEFAULTS
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
        .collect();
    let (_folder, sources) = with_file(&uncommented.join("\n"));
    let entries = sources.load().unwrap().entries();
    let unset: Vec<&Entry> = entries.iter().filter(|entry| entry.value.is_none()).collect();
    assert!(
        unset.iter().all(|entry| entry.key.starts_with("models.")),
        "not in the defaults' text: {unset:?}"
    );
}

#[test]
fn layers_win_in_order() {
    let (folder, mut sources) =
        with_file("[search]\nsteps = 10\nworkers = 3\nseed = 7\n[store]\npath = \"from-file\"\n");
    sources.environment = environment(&[
        ("CLADE_SEARCH_WORKERS", "5"),
        ("CLADE_STORE", "from-env"),
        ("HOME", "/"),
    ]);
    sources.overrides = vec![Override::parse("store.path=from-flag", "--store").unwrap()];
    let loaded = sources.load().unwrap();
    let search = &loaded.config.search;
    assert_eq!(
        (search.steps, search.workers, search.seed, search.islands),
        (10, 5, 7, 1)
    );
    assert_eq!(loaded.config.store.path, std::path::PathBuf::from("from-flag"));
    let origin = |key: &str| {
        let entry = loaded.entries().into_iter().find(|entry| entry.key == key).unwrap();
        entry
            .origin
            .map(|origin| origin.replace(&*folder.path().to_string_lossy(), "FOLDER"))
    };
    assert_eq!(origin("search.steps").as_deref(), Some("FOLDER/clade.toml"));
    assert_eq!(
        origin("search.workers").as_deref(),
        Some("environment variable CLADE_SEARCH_WORKERS")
    );
    assert_eq!(origin("store.path").as_deref(), Some("command line (--store)"));
    assert_eq!(origin("search.islands").as_deref(), Some("default"));
    assert_eq!(origin("search.max_tokens"), None);
}

#[test]
fn texts_become_numbers_flags_and_sizes() {
    let sources = Sources {
        environment: environment(&[
            ("CLADE_SANDBOX_MEMORY", "8GiB"),
            ("CLADE_SANDBOX_WARM", "true"),
            ("CLADE_SEARCH_MAX_COST_USD", "2.5"),
            ("CLADE_SEARCH_SETTINGS_DRAFTS", "1"),
            ("CLADE_STORE_S3_REGION", "123"),
            ("CLADE_SEARCH_MODE", "generation"),
            ("CLADE_MODELS_QWEN_PROVIDER", "openai"),
            ("CLADE_MODELS_QWEN_ENDPOINT", "http://localhost:1/v1"),
            ("CLADE_MODELS_QWEN_MODEL", "q"),
            ("CLADE_MODELS_QWEN_USD_PER_MILLION_PROMPT_TOKENS", "1"),
            ("CLADE_MODELS_QWEN_USD_PER_MILLION_COMPLETION_TOKENS", "2"),
        ]),
        ..Sources::default()
    };
    let config = sources.load().unwrap().config;
    assert_eq!(config.sandbox.memory, ByteSize(8 << 30));
    assert!(config.sandbox.warm);
    assert_eq!(config.search.max_cost_usd, Some(2.5));
    assert_eq!(config.search.settings.drafts, Some(1));
    assert_eq!(config.store.s3.region.as_deref(), Some("123"));
    assert_eq!(config.search.mode, SearchMode::Generation);
    assert_eq!(config.models["qwen"].usd_per_million_prompt_tokens, Some(1.0));
}

#[test]
fn decimal_numbers_keep_their_precision_and_texts_stay_texts() {
    let sources = Sources {
        environment: environment(&[
            ("CLADE_SEARCH_TEMPERATURE", "0.1"),
            ("CLADE_MODELS_Q_PROVIDER", "openai"),
            ("CLADE_MODELS_Q_ENDPOINT", "http://localhost:1/v1"),
            ("CLADE_MODELS_Q_MODEL", "4.5"),
        ]),
        overrides: vec![Override::parse("search.top_p=0.7", "--set").unwrap()],
        ..Sources::default()
    };
    let config = sources.load().unwrap().config;
    assert_eq!((config.search.temperature, config.search.top_p), (0.1, 0.7));
    assert_eq!(config.models["q"].model.as_deref(), Some("4.5"));
}

#[test]
fn unknown_keys_name_key_and_origin() {
    let cases = [
        (
            "[search]\nstepz = 10\n",
            "unknown key 'search.stepz' in FOLDER/clade.toml:2; did you mean 'search.steps'?",
        ),
        (
            "[serch]\nsteps = 10\n",
            "unknown key 'serch' in FOLDER/clade.toml:1; did you mean 'search'?",
        ),
        (
            "[store.s3]\nxyz = 1\n",
            "unknown key 'store.s3.xyz' in FOLDER/clade.toml:2; known there: store.s3.region, store.s3.endpoint, \
             store.s3.allow_http, store.s3.access_key_id_env, store.s3.secret_access_key_env, \
             store.s3.session_token_env",
        ),
        (
            "[models.a]\nprovider = \"openai\"\nendpiont = \"x\"\n",
            "unknown key 'models.a.endpiont' in FOLDER/clade.toml:3; did you mean 'models.a.endpoint'?",
        ),
    ];
    for (text, expected) in cases {
        let (folder, sources) = with_file(text);
        assert_eq!(message(&sources, Some(&folder)), expected);
    }
    let sources = Sources {
        overrides: vec![Override::parse("search.stepz=3", "--set").unwrap()],
        ..Sources::default()
    };
    assert_eq!(
        message(&sources, None),
        "unknown key 'search.stepz' in command line (--set); did you mean 'search.steps'?"
    );
}

#[test]
fn unknown_variables_are_refused_unless_the_configuration_names_them() {
    let sources = Sources {
        environment: environment(&[("CLADE_SEARCH_STEPZ", "1")]),
        ..Sources::default()
    };
    assert_eq!(
        message(&sources, None),
        "unknown variable CLADE_SEARCH_STEPZ in the environment; did you mean 'CLADE_SEARCH_STEPS'?"
    );
    let text =
        "[models.a]\nprovider = \"openai\"\nendpoint = \"https://x\"\nmodel = \"m\"\napi_key_env = \"CLADE_KEY\"\n";
    let (_folder, mut sources) = with_file(text);
    sources.environment = environment(&[("CLADE_KEY", "secret"), ("CLADE_TEST_X", "1")]);
    let loaded = sources.load().unwrap();
    assert!(
        !format!("{:?}", loaded.entries()).contains("secret\""),
        "the key's value was printed"
    );
}

#[test]
fn wrong_types_and_ranges_name_key_and_origin() {
    let cases = [
        (
            "[search]\nsteps = \"many\"\n",
            "'search.steps' in FOLDER/clade.toml:2: invalid type: found string \"many\", expected u64",
        ),
        (
            "[search]\nsteps = 0\n",
            "'search.steps' in FOLDER/clade.toml:2: must be at least 1",
        ),
        (
            "[search]\ntop_p = 1.5\n",
            "'search.top_p' in FOLDER/clade.toml:2: must be above 0 and at most 1",
        ),
        (
            "[search.settings]\nnovelty_weight = nan\n",
            "'search.settings.novelty_weight' in FOLDER/clade.toml:2: must be finite and not negative",
        ),
        (
            "[sandbox]\nmemory = \"lots\"\n",
            "'sandbox.memory' in FOLDER/clade.toml:2: 'lots' is no size: write bytes or a number with a unit, such as 512MiB or 4GiB",
        ),
        (
            "[search]\nmode = \"fast\"\n",
            "'search.mode' in FOLDER/clade.toml:2: unknown variant: found `fast`, expected ``async` or `generation``",
        ),
        (
            "[models.a]\nprovider = \"openai\"\n",
            "'models.a.endpoint' in the configuration: is needed by the openai provider",
        ),
    ];
    for (text, expected) in cases {
        let (folder, sources) = with_file(text);
        assert_eq!(message(&sources, Some(&folder)), expected);
    }
}

#[test]
fn a_named_file_must_exist_and_be_toml() {
    let sources = Sources {
        file: Some("/nowhere/clade.toml".into()),
        ..Sources::default()
    };
    assert!(message(&sources, None).starts_with("cannot read the configuration file /nowhere/clade.toml: "));
    let (folder, sources) = with_file("[search\n");
    assert!(message(&sources, Some(&folder)).starts_with("FOLDER/clade.toml is not valid TOML: "));
}

#[test]
fn a_models_keys_are_those_of_its_struct() {
    let (_folder, sources) = with_file("[models.a]\nprovider = \"openai\"\nprofile = \"vllm\"\nmodel = \"m\"\n");
    let entries = sources.load().unwrap().entries();
    let mut keys: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry.key.strip_prefix("models.a."))
        .collect();
    let mut expected = crate::model::ModelOptions::KEYS.to_vec();
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
}
