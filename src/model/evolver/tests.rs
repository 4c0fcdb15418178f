#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::chance::Chance;
use super::genome::{Family, Genome, Scalar};
use super::literal::{Literal, quote};
use super::metric::Metric;
use super::profile::{Outcome, TaskProfile};
use super::repair::{Fault, repair};
use super::{cost, cross, draw, foreign, mutate, render};
use crate::model::request::{NodeContext, TaskContext};

/// A small task in a folder of its own.
struct Fixture {
    _folder: TempDir,
    task: TaskContext,
}

impl Fixture {
    fn new(metric: &str, higher_is_better: bool, targets: &[&str], files: &[(&str, String)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let task = TaskContext {
            task_id: format!("small-{metric}"),
            public_dir: folder.path().to_path_buf(),
            description: String::new(),
            metric: metric.to_owned(),
            higher_is_better,
            modality: "tabular".to_owned(),
            task_type: String::new(),
            id_column: Some("id".to_owned()),
            target_columns: targets.iter().map(|target| (*target).to_owned()).collect(),
            time_limit_seconds: 300,
        };
        Self { _folder: folder, task }
    }

    fn profile(&self) -> TaskProfile {
        TaskProfile::read(&self.task).unwrap()
    }

    /// Rows of numbers, two kinds of categories and a target, with gaps.
    fn table(metric: &str, higher_is_better: bool, target: fn(usize) -> String, sample: &str) -> Self {
        let mut train = String::from("id,size,width,shape,town,y\n");
        let mut test = String::from("id,size,width,shape,town\n");
        for row in 0..200 {
            let width = if row % 9 == 0 {
                String::new()
            } else {
                format!("{}.5", row % 17)
            };
            let features = format!("{row},{width},{},town {}", ["round", "flat"][row % 2], row % 40);
            writeln!(train, "{row},{features},{}", target(row)).unwrap();
            writeln!(test, "{},{features}", row + 1000).unwrap();
        }
        let sample = format!(
            "{sample}\n{}\n",
            sample.split(',').map(|_| "0").collect::<Vec<_>>().join(",")
        );
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new(metric, higher_is_better, &["y"], &files)
    }

    fn all() -> Vec<Self> {
        vec![
            Self::table("rmse", false, |row| format!("{}", row % 13), "id,y"),
            Self::table("mae", false, |row| format!("{}.25", row * row), "id,y"),
            Self::table("qwk", true, |row| format!("{}", row % 4), "id,y"),
            Self::table("auc", true, |row| ["yes", "no"][row % 2].to_owned(), "id,y"),
            Self::table(
                "accuracy",
                true,
                |row| ["red", "green", "blue"][row % 3].to_owned(),
                "id,y",
            ),
            Self::table("f1", true, |row| format!("{}", row % 2), "id,y"),
            Self::table("log_loss", false, |row| ["a", "b", "c"][row % 3].to_owned(), "id,a,b,c"),
            Self::several_targets(),
            Self::survival(),
            Self::ranking(),
            Self::forecast(),
            Self::reviews(),
            Self::pictures(),
            Self::series(),
            Self::time_order(),
        ]
    }

    fn several_targets() -> Self {
        let mut train = String::from("id,size,shape,a,b\n");
        let mut test = String::from("id,size,shape\n");
        for row in 0..100 {
            writeln!(
                train,
                "{row},{row}.5,{},{},{}",
                ["round", "flat"][row % 2],
                row % 3,
                row % 5
            )
            .unwrap();
            writeln!(test, "{},{row}.5,flat", row + 500).unwrap();
        }
        let sample = "id,a,b\n500,0,0\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new("mean_columnwise_rmse", false, &["a", "b"], &files)
    }

    fn survival() -> Self {
        let mut train = String::from("id,size,days,died\n");
        let mut test = String::from("id,size\n");
        for row in 0..100 {
            writeln!(train, "{row},{row}.5,{},{}", 1 + row % 37, row % 2).unwrap();
            writeln!(test, "{},{row}.5", row + 500).unwrap();
        }
        let sample = "id,risk\n500,0\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new("concordance_index", true, &["days", "died"], &files)
    }

    fn ranking() -> Self {
        let mut train = String::from("id,item,stars,time\n");
        for row in 0..300 {
            writeln!(train, "{},{},{},{row}", row / 10, (row * 7) % 50, row % 5).unwrap();
        }
        let test = String::from("id\n0\n1\n2\n");
        let sample = "id,items\n0,1 2 3 4 5\n1,1 2 3 4 5\n2,1 2 3 4 5\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        let mut fixture = Self::new("map_at_k", true, &["items"], &files);
        fixture.task.description = "The last three items of every user were held back.".to_owned();
        fixture
    }

    fn forecast() -> Self {
        let day =
            |year: usize, row: usize| format!("{}-{:02}-{:02}", year + row / 336, 1 + row / 28 % 12, 1 + row % 28);
        let mut train = String::from("id,y\n");
        let mut test = String::from("id\n");
        for row in 0..1000 {
            writeln!(train, "{},{}", day(2000, row), 100 + row % 7).unwrap();
        }
        for row in 1008..1100 {
            writeln!(test, "{}", day(2000, row)).unwrap();
        }
        let sample = "id,y\n2003-01-01,0\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new("smape", false, &["y"], &files)
    }

    fn reviews() -> Self {
        let mut train = String::from("id,film,text,y\n");
        let mut test = String::from("id,film,text\n");
        for row in 0..200 {
            writeln!(
                train,
                "{row},film {},a film of {row} words that few will like,{}",
                row % 30,
                row % 2
            )
            .unwrap();
            writeln!(
                test,
                "{},other {},a film that many will like {row},",
                row + 500,
                row % 30
            )
            .unwrap();
        }
        let sample = "id,y\n500,0.5\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new("auc", true, &["y"], &files)
    }

    fn pictures() -> Self {
        let mut files = Vec::new();
        let mut train = String::from("id,y\n");
        let mut test = String::from("id\n");
        for row in 0..20 {
            writeln!(train, "p{row},{}", row % 3).unwrap();
            writeln!(test, "q{row}").unwrap();
            files.push((format!("images/train/p{row}.png"), "not a picture".to_owned()));
        }
        files.push(("train.csv".to_owned(), train));
        files.push(("test.csv".to_owned(), test));
        files.push(("sample_submission.csv".to_owned(), "id,y\nq0,0\n".to_owned()));
        let files: Vec<_> = files
            .iter()
            .map(|(name, content)| (name.as_str(), content.clone()))
            .collect();
        Self::new("accuracy", true, &["y"], &files)
    }

    fn series() -> Self {
        let mut train = String::from("id,y\n");
        let mut long = String::from("id,t,left,right\n");
        for row in 0..30 {
            writeln!(train, "{row},{}", row % 3).unwrap();
            for step in 0..5 {
                writeln!(long, "{row},{step},{}.5,{step}.5", row % 3).unwrap();
            }
        }
        let files = [
            ("train.csv", train),
            ("test.csv", "id\n100\n101\n".to_owned()),
            ("sample_submission.csv", "id,y\n100,0\n".to_owned()),
            ("train_series.csv", long),
            (
                "test_series.csv",
                "id,t,left,right\n100,0,1.5,2.5\n101,0,1.5,2.5\n".to_owned(),
            ),
        ];
        Self::new("accuracy", true, &["y"], &files)
    }

    fn time_order() -> Self {
        let mut train = String::from("id,team,season,date,goals,y\n");
        let mut test = String::from("id,team,season,date\n");
        for row in 0..300 {
            let date = format!("{:02}.{:02}.{}", 1 + row % 28, 1 + row / 28 % 12, 1990 + row / 336);
            writeln!(
                train,
                "{row},team {},{},{date},{},{}",
                row % 20,
                1960 + row / 10,
                row % 4,
                row % 3
            )
            .unwrap();
            writeln!(
                test,
                "{},team {},2001,{:02}.03.2001",
                row + 1000,
                row % 20,
                1 + row % 28
            )
            .unwrap();
        }
        let sample = "id,0,1,2\n1000,0.3,0.3,0.4\n".to_owned();
        let files = [
            ("train.csv", train),
            ("test.csv", test),
            ("sample_submission.csv", sample),
        ];
        Self::new("log_loss", false, &["y"], &files)
    }
}

fn tabular(genome: &Genome) -> &super::genome::TabularGenome {
    match genome {
        Genome::Tabular(tabular) => tabular,
        Genome::Ranking(_) => panic!("a ranking genome"),
    }
}

#[test]
fn a_program_carries_its_genome() {
    for fixture in Fixture::all() {
        let profile = fixture.profile();
        for seed in 0..60 {
            let genome = draw::genome(&profile, &mut Chance::new(seed, 0));
            let code = render::program(&genome, &profile);
            assert_eq!(
                Genome::read(&code, &profile).as_ref(),
                Some(&genome),
                "{} {seed}:\n{code}",
                profile.task_id
            );
        }
    }
}

#[test]
fn mutations_and_crossovers_change_the_program_and_stay_readable() {
    for fixture in Fixture::all() {
        let profile = fixture.profile();
        let mut chance = Chance::new(7, 0);
        let mut genome = draw::genome(&profile, &mut chance);
        for _ in 0..60 {
            let before = render::program(&genome, &profile);
            let Some((changed, words)) = mutate::mutate(&genome, &mutate::Promise::new(), &profile, &mut chance) else {
                continue;
            };
            let after = render::program(&changed, &profile);
            assert_ne!(before, after, "{words}");
            assert_eq!(
                Genome::read(&after, &profile).as_ref(),
                Some(&changed),
                "{words}\n{after}"
            );
            let other = draw::genome(&profile, &mut chance);
            if let Some((crossed, words)) = cross::cross(&changed, &other, &profile, &mut chance) {
                let code = render::program(&crossed, &profile);
                assert_eq!(
                    Genome::read(&code, &profile).as_ref(),
                    Some(&crossed),
                    "{words}\n{code}"
                );
            }
            genome = changed;
        }
    }
}

#[test]
fn drafts_differ_and_stay_within_the_time() {
    for fixture in Fixture::all() {
        let profile = fixture.profile();
        let mut programs = std::collections::HashSet::new();
        for seed in 0..20 {
            let genome = draw::genome(&profile, &mut Chance::new(seed, 0));
            assert!(cost::seconds(&genome, &profile) <= cost::budget(&profile));
            programs.insert(render::program(&genome, &profile));
        }
        assert!(
            programs.len() >= 18,
            "{} of 20 drafts differ for {}",
            programs.len(),
            profile.task_id
        );
    }
}

#[test]
fn every_fault_is_answered_by_another_program() {
    let node = |class: &str, error: &str| NodeContext {
        status: "code_execution_error".to_owned(),
        error_class: Some(class.to_owned()),
        error: Some(error.to_owned()),
        ..NodeContext::default()
    };
    let faults = [
        (node("timeout", ""), Fault::Time),
        (node("oom", ""), Fault::Memory),
        (node("value", "ValueError: Input X contains NaN."), Fault::Gaps),
        (
            node("", "ModuleNotFoundError: No module named 'xgboost'"),
            Fault::Import,
        ),
        (node("key", "KeyError: 'price'"), Fault::Name),
        (
            node("shape", "ValueError: operands could not be broadcast"),
            Fault::Shape,
        ),
        (node("submission_format", ""), Fault::Submission),
        (node("", "something odd"), Fault::Unknown),
    ];
    let profile = Fixture::table("rmse", false, |row| format!("{}", row % 13), "id,y").profile();
    for (node, fault) in faults {
        assert_eq!(Fault::of(&node), fault, "{node:?}");
        for seed in 0..20 {
            let mut chance = Chance::new(seed, 0);
            let genome = draw::genome(&profile, &mut chance);
            let (repaired, _) = repair(&genome, fault, 0, &profile, &mut chance);
            if fault == Fault::Time {
                assert!(cost::seconds(&repaired, &profile) < cost::seconds(&genome, &profile).max(2.1));
            }
            let (anew, _) = repair(&genome, fault, 2, &profile, &mut chance);
            assert_eq!(anew, draw::plainest(&profile));
            let code = render::program(&repaired, &profile);
            assert!(Genome::read(&code, &profile).is_some());
        }
    }
}

#[test]
fn profiles_say_what_is_asked() {
    let outcome = |fixture: Fixture| fixture.profile().outcome;
    let table = |metric, target, sample| outcome(Fixture::table(metric, true, target, sample));
    assert!(matches!(
        table("rmse", |row| format!("{row}"), "id,y"),
        Outcome::Values { .. }
    ));
    match table("auc", |row| ["yes", "no"][row % 2].to_owned(), "id,y") {
        Outcome::Probability { positive, negative, .. } => {
            assert_eq!((positive.text.as_str(), negative.text.as_str()), ("yes", "no"));
        }
        other => panic!("{other:?}"),
    }
    match table("accuracy", |row| format!("{}", row % 3), "id,y") {
        Outcome::Label { classes, .. } => assert_eq!(classes.len(), 3),
        other => panic!("{other:?}"),
    }
    match table("log_loss", |row| ["b", "a"][row % 2].to_owned(), "id,p_a,p_b") {
        Outcome::Classes { columns, .. } => {
            let pairs: Vec<_> = columns
                .iter()
                .map(|(class, column)| (class.text.as_str(), column.as_str()))
                .collect();
            assert_eq!(pairs, [("a", "p_a"), ("b", "p_b")]);
        }
        other => panic!("{other:?}"),
    }
    match outcome(Fixture::ranking()) {
        Outcome::Ranking(ranking) => {
            assert_eq!((ranking.item.as_str(), ranking.time.as_deref()), ("item", Some("time")));
            assert_eq!((ranking.length, ranking.held_back), (5, 3));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(outcome(Fixture::survival()), Outcome::Risk { .. }));
    assert!(matches!(outcome(Fixture::several_targets()), Outcome::Values { targets, .. } if targets.len() == 2));
}

#[test]
fn profiles_sort_the_columns() {
    let profile = Fixture::table("rmse", false, |row| format!("{row}"), "id,y").profile();
    assert_eq!(
        (profile.numeric, profile.low, profile.high),
        (strings(&["size", "width"]), strings(&["shape"]), strings(&["town"]))
    );
    assert!(profile.missing && !profile.repeated_rows);
    let reviews = Fixture::reviews().profile();
    assert_eq!(
        (reviews.text, reviews.group.as_deref()),
        (strings(&["text"]), Some("film"))
    );
    assert!(Fixture::forecast().profile().forecast.is_some());
    assert!(Fixture::pictures().profile().images.is_some());
    assert!(Fixture::series().profile().series.is_some());
    let ordered = Fixture::time_order().profile();
    assert!(ordered.time_order.is_some());
    assert!(
        ordered.numeric.is_empty(),
        "the season grows with time: {:?}",
        ordered.numeric
    );
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_positive_class_is_the_one_the_description_asks_for() {
    let mut fixture = Fixture::table("auc", true, |row| ["bueno", "malo"][row % 2].to_owned(), "id,y");
    let positive = |fixture: &Fixture| match fixture.profile().outcome {
        Outcome::Probability { positive, .. } => positive.text,
        other => panic!("{other:?}"),
    };
    fixture.task.description = "Predict the probability that a client is 'bueno'.".to_owned();
    assert_eq!(positive(&fixture), "bueno");
    fixture.task.description = "Predict the probability that a client turns out bad ('malo').".to_owned();
    assert_eq!(positive(&fixture), "malo");
}

#[test]
fn files_that_are_not_utf8_or_comma_separated_are_read_as_they_are() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("train.csv", b"id;Antig\xfcedad;y\n1;3;5\n2;4;6\n3;9;8\n");
    write("test.csv", b"id;Antig\xfcedad\n4;3\n");
    write("sample_submission.csv", b"id,y\n4,0\n");
    let fixture = Fixture::table("rmse", false, |row| format!("{row}"), "id,y");
    let task = TaskContext {
        public_dir: folder.path().to_path_buf(),
        ..fixture.task.clone()
    };
    let profile = TaskProfile::read(&task).unwrap();
    assert_eq!(profile.numeric, strings(&["Antigüedad"]));
    let code = render::program(&draw::plainest(&profile), &profile);
    for call in [
        r#"train = pd.read_csv(DATA_DIR / "train.csv", sep=";", encoding="latin-1")"#,
        r#"sample = pd.read_csv(DATA_DIR / "sample_submission.csv")"#,
    ] {
        assert!(code.contains(call), "{code}");
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let fixture = Fixture::table("rmse", false, |row| format!("{row}"), "id,y");
    let task = TaskContext {
        public_dir: Path::new("/nowhere").to_path_buf(),
        ..fixture.task.clone()
    };
    let error = TaskProfile::read(&task).unwrap_err().to_string();
    assert!(
        error.contains("/nowhere/train.csv") && error.contains("small-rmse"),
        "{error}"
    );
}

#[test]
fn programs_of_others_are_met_half_way() {
    let profile = Fixture::table("rmse", false, |row| format!("{}", row % 13), "id,y").profile();
    let code = "from xgboost import XGBRegressor\nfrom sklearn.linear_model import Ridge\n\
                model = XGBRegressor(n_estimators=250, learning_rate=0.03)\nother = Ridge(alpha=5)\ny = np.log1p(y)\n";
    let genome = foreign::read(code, &profile).unwrap();
    let tabular = tabular(&genome);
    assert_eq!(genome.names(), ["hist_boosting", "ridge"]);
    let boosting = tabular.members.get("hist_boosting").unwrap();
    assert_eq!(boosting.params.get("max_iter"), Some(&Scalar::Int(250)));
    assert_eq!(boosting.params.get("learning_rate"), Some(&Scalar::Float(0.03)));
    assert_eq!(
        tabular.members.get("ridge").unwrap().params.get("alpha"),
        Some(&Scalar::Float(5.0))
    );
    assert_eq!(tabular.target, super::genome::Target::Log);
    let aliased = "from sklearn.ensemble import ExtraTreesRegressor as M\nmodel = M(n_estimators=99)\n";
    assert_eq!(foreign::read(aliased, &profile).unwrap().names(), ["extra_trees"]);
    assert!(foreign::read("print('hello')", &profile).is_none());
}

#[test]
fn an_edited_config_is_taken_over_and_nonsense_is_not() {
    let profile = Fixture::table("rmse", false, |row| format!("{}", row % 13), "id,y").profile();
    let code = "CONFIG = {  # by hand\n 'kind': 'tabular', 'seed': 3, 'folds': 4,\n 'members': {'ridge': {'weight': 1, 'params': {'alpha': 2.5,},},},\n}\n";
    let genome = Genome::read(code, &profile).unwrap();
    let ridge = tabular(&genome).members.get("ridge").unwrap();
    assert_eq!(ridge.params.get("alpha"), Some(&Scalar::Float(2.5)));
    assert!(Genome::read("CONFIG = {'kind': 'tabular'}", &profile).is_none());
    assert!(Genome::read("CONFIG = {'members'", &profile).is_none());
    assert!(Genome::read("x = 1", &profile).is_none());
}

#[test]
fn metrics_are_recognised_by_name_and_in_words() {
    let cases = [
        ("rmse", Metric::Rmse),
        ("root mean squared error", Metric::Rmse),
        ("rmsle", Metric::Rmsle),
        ("mean_columnwise_rmse", Metric::MeanColumnwiseRmse),
        ("mean_columnwise_auc", Metric::MeanColumnwiseAuc),
        ("map_at_k", Metric::MapAtK),
        ("MAP@10", Metric::MapAtK),
        ("area under the ROC curve", Metric::Auc),
        ("average_precision", Metric::AveragePrecision),
        ("binary_log_loss", Metric::LogLoss),
        ("macro_f1", Metric::MacroF1),
        ("symmetric mean absolute percentage error, 0 to 200", Metric::Smape),
        ("quadratic weighted kappa", Metric::Qwk),
        ("mcc", Metric::Mcc),
        ("concordance_index", Metric::ConcordanceIndex),
        ("accuracy", Metric::Accuracy),
    ];
    for (name, metric) in cases {
        assert_eq!(Metric::recognise(name), Some(metric), "{name}");
    }
    assert_eq!(Metric::recognise("joy"), None);
}

#[test]
fn family_names_survive_numbering() {
    for family in Family::ALL {
        assert_eq!(Family::from_name(family.name()), Some(family));
        assert_eq!(Family::from_name(&format!("{}_12", family.name())), Some(family));
    }
    assert_eq!(Family::from_name("oracle"), None);
}

proptest! {
    #[test]
    fn any_text_survives_as_a_python_literal(text in ".{0,40}") {
        prop_assert_eq!(Literal::parse(&quote(&text)), Some(Literal::Text(text)));
    }

    #[test]
    fn reading_literals_never_panics(text in "[{}\\[\\]()'\",:#\\\\ a-zT0-9.\\-\n]{0,60}") {
        let _ = Literal::parse(&text);
    }

    #[test]
    fn drawing_is_deterministic(seed in any::<u64>(), sample in 0_u32..4) {
        let profile = Fixture::table("mae", false, |row| format!("{row}.5"), "id,y").profile();
        let draw = || render::program(&draw::genome(&profile, &mut Chance::new(seed, sample)), &profile);
        prop_assert_eq!(draw(), draw());
    }
}
