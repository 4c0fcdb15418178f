//! Derived splits of small packages of every shape.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;
use crate::gym::checks::Tables;
use crate::gym::package::{FileRole, Package};

/// A package in a temporary folder.
struct Made {
    dir: tempfile::TempDir,
    settings: ValidationSettings,
}

impl Made {
    fn new(files: &[(&str, String)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("data").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                text.chars()
                    .map(|c| if c == 'ñ' { 0xF1 } else { c as u8 })
                    .collect::<Vec<_>>(),
            )
            .unwrap();
        }
        Self {
            dir,
            settings: ValidationSettings::default(),
        }
    }

    fn derive(&self, out: &str) -> Result<Split, String> {
        let tables = Tables::read(self.dir.path()).unwrap();
        let public = self.dir.path().join("data/public");
        let files: Vec<String> = Package::scan(self.dir.path())
            .unwrap()
            .files
            .iter()
            .filter(|f| f.role == FileRole::Public)
            .map(|f| f.path["data/public/".len()..].to_owned())
            .collect();
        let (train, test) = (tables.train.as_ref().unwrap(), tables.test.as_ref().unwrap());
        let (sample, answer) = (tables.sample.as_ref().unwrap(), tables.answer.as_ref().unwrap());
        let columns = Columns::find(sample, test, answer);
        let input = SplitInput {
            public: &public,
            public_files: &files,
            train,
            test,
            sample,
            answer,
            columns: &columns,
            settings: &self.settings,
        };
        derive(&input, &self.dir.path().join(out)).unwrap()
    }

    fn read(&self, path: &str) -> Table {
        Table::read(&self.dir.path().join("validation").join(path)).unwrap()
    }

    fn column(&self, path: &str, name: &str) -> Vec<String> {
        let table = self.read(path);
        table
            .column(table.position(name).unwrap())
            .into_iter()
            .map(|v| v.into_owned())
            .collect()
    }

    /// Paths of the validation's public files.
    fn public_files(&self) -> BTreeSet<String> {
        fn walk(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, found);
                } else {
                    found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let root = self.dir.path().join("validation/public");
        let mut found = BTreeSet::new();
        walk(&root, &root, &mut found);
        found
    }
}

fn lines(header: &str, rows: impl Iterator<Item = String>) -> String {
    let mut text = format!("{header}\n");
    rows.for_each(|r| text.push_str(&format!("{r}\n")));
    text
}

/// A package with 100 training and 20 test rows of one feature and a class.
fn plain(extra: &[(&str, String)]) -> Made {
    let class = |n: usize| if n.is_multiple_of(4) { "yes" } else { "no" };
    let mut files = vec![
        (
            "public/train.csv",
            lines(
                "id,x,y",
                (0..100).map(|n| format!("{n},{}.50,{}", n * 7 % 10, class(n))),
            ),
        ),
        (
            "public/test.csv",
            lines("id,x", (100..120).map(|n| format!("{n},{}.50", n * 7 % 10))),
        ),
        (
            "public/sample_submission.csv",
            lines("id,y", (100..120).map(|n| format!("{n},no"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,y", (100..120).map(|n| format!("{n},{}", class(n)))),
        ),
    ];
    files.extend(extra.iter().cloned());
    Made::new(&files)
}

#[test]
fn classes_keep_their_shares_and_files_their_form() {
    let made = plain(&[("public/description.txt", "words".into())]);
    let split = made.derive("validation").unwrap();
    assert_eq!((split.train_rows, split.test_rows, split.by_time), (80, 20, false));
    let answers = made.column("private/test_answer.csv", "y");
    assert_eq!(answers.iter().filter(|y| *y == "yes").count(), 5);
    let test = made.read("public/test.csv");
    assert_eq!(test.columns(), ["id", "x"]);
    assert!(made.column("public/test.csv", "x").iter().all(|x| x.ends_with(".50")));
    assert_eq!(made.column("public/sample_submission.csv", "y"), vec!["no"; 20]);
    assert_eq!(
        made.column("public/sample_submission.csv", "id"),
        made.column("private/test_answer.csv", "id")
    );
    let kept: BTreeSet<String> = made.column("public/train.csv", "id").into_iter().collect();
    assert!(made.column("public/test.csv", "id").iter().all(|id| !kept.contains(id)));
    assert!(made.public_files().contains("description.txt"));
}

#[test]
fn the_seed_decides() {
    let mut made = plain(&[]);
    made.derive("validation").unwrap();
    made.derive("again").unwrap();
    let read = |at: &str| fs::read(made.dir.path().join(at).join("public/test.csv")).unwrap();
    assert_eq!(read("validation"), read("again"));
    made.settings.seed = Some(1);
    made.settings.ratio = Some(0.3);
    let split = made.derive("other").unwrap();
    assert_eq!(split.test_rows, 30);
    let first = fs::read(made.dir.path().join("again/public/test.csv")).unwrap();
    assert_ne!(first, fs::read(made.dir.path().join("other/public/test.csv")).unwrap());
}

#[test]
fn odd_formats_stay_as_they_are() {
    let made = Made::new(&[
        (
            "public/train.csv",
            lines(
                "id;año;precio;y\r",
                (0..50).map(|n| format!("{n};\"niño; {n}\";1,{n};{}\r", n % 2)),
            ),
        ),
        (
            "public/test.csv",
            lines("id;año;precio\r", (50..60).map(|n| format!("{n};\"a\";1,0\r"))),
        ),
        (
            "public/sample_submission.csv",
            lines("id,y", (50..60).map(|n| format!("{n},0.5"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,y", (50..60).map(|n| format!("{n},1"))),
        ),
    ]);
    made.derive("validation").unwrap();
    let text = fs::read(made.dir.path().join("validation/public/test.csv")).unwrap();
    let real = fs::read(made.dir.path().join("data/public/train.csv")).unwrap();
    let line = text.split(|b| *b == b'\n').nth(1).unwrap();
    let start = [line.strip_suffix(b"\r").unwrap(), b";"].concat();
    assert!(
        real.windows(start.len()).any(|w| w == start),
        "{}",
        String::from_utf8_lossy(line)
    );
}

#[test]
fn repeated_identifiers_stay_together() {
    let mut rows: Vec<String> = (0..100).map(|n| format!("{n},{n},{}", n % 3)).collect();
    rows.extend((0..30).map(|n| format!("{n},{n},{}", n % 3)));
    let made = Made::new(&[
        ("public/train.csv", lines("index,x,y", rows.into_iter())),
        (
            "public/test.csv",
            lines("index,x", (200..210).map(|n| format!("{n},1"))),
        ),
        (
            "public/sample_submission.csv",
            lines("index,y", (200..210).map(|n| format!("{n},0"))),
        ),
        (
            "private/test_answer.csv",
            lines("index,y", (200..210).map(|n| format!("{n},0"))),
        ),
    ]);
    made.derive("validation").unwrap();
    let test = made.column("public/test.csv", "index");
    let kept: BTreeSet<String> = made.column("public/train.csv", "index").into_iter().collect();
    assert_eq!(test.iter().collect::<BTreeSet<_>>().len(), test.len());
    assert!(test.iter().all(|id| !kept.contains(id)));
}

#[test]
fn groups_are_found_and_kept_whole() {
    let row = |n: usize, speaker: usize| format!("{n},s{speaker},{}", n % 10);
    let made = Made::new(&[
        (
            "public/train.csv",
            lines(
                "id,speaker,x,y",
                (0..200).map(|n| format!("{},{}", row(n, n % 10), n % 2)),
            ),
        ),
        (
            "public/test.csv",
            lines("id,speaker,x", (200..260).map(|n| row(n, 10 + n % 3))),
        ),
        (
            "public/sample_submission.csv",
            lines("id,y", (200..260).map(|n| format!("{n},0"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,y", (200..260).map(|n| format!("{n},1"))),
        ),
    ]);
    let split = made.derive("validation").unwrap();
    assert!(split.how.contains("'speaker'"), "{}", split.how);
    let held: BTreeSet<String> = made.column("public/test.csv", "speaker").into_iter().collect();
    let kept: BTreeSet<String> = made.column("public/train.csv", "speaker").into_iter().collect();
    assert_eq!((held.len(), kept.len()), (2, 8));
    assert!(held.is_disjoint(&kept));
}

#[test]
fn later_tests_are_later_in_the_validation_too() {
    let date = |n: usize| format!("{:02}.{:02}.{}", n % 28 + 1, n / 28 % 12 + 1, 2000 + n / 336);
    let made = Made::new(&[
        // Not in the order of time, and with a column that only the past has.
        (
            "public/train.csv",
            lines(
                "match,Date,goals,y",
                (0..400)
                    .map(|n| n * 37 % 400)
                    .map(|n| format!("{n},{},{n},{n}.5", date(n))),
            ),
        ),
        (
            "public/test.csv",
            lines("match,Date", (400..440).map(|n| format!("{n},{}", date(n)))),
        ),
        (
            "public/sample_submission.csv",
            lines("match,y", (400..440).map(|n| format!("{n},0"))),
        ),
        (
            "private/test_answer.csv",
            lines("match,y", (400..440).map(|n| format!("{n},1"))),
        ),
    ]);
    let split = made.derive("validation").unwrap();
    assert!(split.by_time);
    assert_eq!(split.test_rows, 40);
    let held: BTreeSet<usize> = made
        .column("public/test.csv", "match")
        .iter()
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(held, (360..400).collect());
    assert_eq!(made.read("public/test.csv").columns(), ["match", "Date"]);
}

#[test]
fn a_group_of_rows_of_one_time_is_never_divided() {
    let row = |n: usize| format!("{n},{}", 1990 + n / 30);
    let made = Made::new(&[
        (
            "public/train.csv",
            lines("id,year,y", (0..300).map(|n| format!("{},{n}.1", row(n)))),
        ),
        ("public/test.csv", lines("id,year", (300..345).map(row))),
        (
            "public/sample_submission.csv",
            lines("id,y", (300..345).map(|n| format!("{n},0"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,y", (300..345).map(|n| format!("{n},1"))),
        ),
    ]);
    assert_eq!(made.derive("validation").unwrap().test_rows, 60);
}

#[test]
fn the_package_can_say_how() {
    let mut made = plain(&[]);
    made.settings.group_column = Some("x".into());
    let split = made.derive("validation").unwrap();
    assert!(split.how.contains("'x'"));
    made.settings.group_column = Some("nope".into());
    assert!(made.derive("other").unwrap_err().contains("nope"));
    made.settings.group_column = None;
    made.settings.time_column = Some("id".into());
    assert!(made.derive("third").unwrap().by_time);
}

/// Image files: training images in folders by class or in one, test images in another.
fn images(train_folder: impl Fn(usize) -> String, test_folder: &str, masks: bool) -> Made {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for n in 0..60 {
        files.insert(format!("public/{}/im{n}.png", train_folder(n)), format!("image {n}"));
        if masks {
            files.insert(format!("public/masks/im{n}.png"), format!("mask {n}"));
        }
    }
    for n in 60..80 {
        files.insert(format!("public/{test_folder}/im{n}.png"), format!("image {n}"));
    }
    let class = |n: usize| ["cat", "dog", "cow"][n % 3];
    files.insert(
        "public/train.csv".into(),
        lines("image,y", (0..60).map(|n| format!("im{n},{}", class(n)))),
    );
    files.insert(
        "public/test.csv".into(),
        lines("image", (60..80).map(|n| format!("im{n}"))),
    );
    files.insert(
        "public/sample_submission.csv".into(),
        lines("image,y", (60..80).map(|n| format!("im{n},cat"))),
    );
    files.insert(
        "private/test_answer.csv".into(),
        lines("image,y", (60..80).map(|n| format!("im{n},{}", class(n)))),
    );
    let files: Vec<(&str, String)> = files.iter().map(|(p, t)| (p.as_str(), t.clone())).collect();
    Made::new(&files)
}

fn check_images(train_folder: impl Fn(usize) -> String, test_folder: &str) {
    let made = images(&train_folder, test_folder, false);
    made.derive("validation").unwrap();
    let files = made.public_files();
    let held: BTreeSet<String> = made.column("public/test.csv", "image").into_iter().collect();
    for n in 0..80 {
        let id = format!("im{n}");
        let places: Vec<&String> = files.iter().filter(|f| f.ends_with(&format!("/{id}.png"))).collect();
        match (n < 60, held.contains(&id)) {
            (false, _) => assert!(places.is_empty(), "{id} is a real test image: {places:?}"),
            (true, true) => assert_eq!(places, [&format!("{test_folder}/{id}.png")]),
            (true, false) => assert_eq!(places, [&format!("{}/{id}.png", train_folder(n))]),
        }
    }
}

#[test]
fn held_out_images_lie_where_test_images_lie() {
    check_images(|_| "images/train".into(), "images/test");
    check_images(
        |n| format!("images/train/{}", ["cat", "dog", "cow"][n % 3]),
        "images/test",
    );
    check_images(|_| "train_images".into(), "test_images");
    check_images(|_| "images".into(), "images");
}

#[test]
fn masks_of_held_out_images_are_left_out() {
    let made = images(|_| "images/train".into(), "images/test", true);
    let split = made.derive("validation").unwrap();
    let files = made.public_files();
    for id in made.column("public/test.csv", "image") {
        assert!(!files.contains(&format!("masks/{id}.png")));
        let bytes =
            fs::read_to_string(made.dir.path().join(format!("validation/public/images/test/{id}.png"))).unwrap();
        assert!(bytes.starts_with("image"));
    }
    assert!(split.notes.iter().any(|n| n.contains("left out")));
}

#[test]
fn cells_that_name_moved_files_follow_them() {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for n in 0..60 {
        files.insert(format!("public/train/{}/f{n}.png", n % 2), "x".into());
    }
    (60..80).for_each(|n| drop(files.insert(format!("public/test/f{n}.png"), "x".into())));
    files.insert(
        "public/train.csv".into(),
        lines(
            "id,path,y",
            (0..60).map(|n| format!("{n},train/{}/f{n}.png,{}", n % 2, n % 2)),
        ),
    );
    files.insert(
        "public/test.csv".into(),
        lines("id,path", (60..80).map(|n| format!("{n},test/f{n}.png"))),
    );
    files.insert(
        "public/sample_submission.csv".into(),
        lines("id,y", (60..80).map(|n| format!("{n},0"))),
    );
    files.insert(
        "private/test_answer.csv".into(),
        lines("id,y", (60..80).map(|n| format!("{n},1"))),
    );
    let files: Vec<(&str, String)> = files.iter().map(|(p, t)| (p.as_str(), t.clone())).collect();
    let made = Made::new(&files);
    made.derive("validation").unwrap();
    let found = made.public_files();
    for path in made.column("public/test.csv", "path") {
        assert!(path.starts_with("test/f") && found.contains(&path), "{path}");
    }
    assert!(
        made.column("public/train.csv", "path")
            .iter()
            .all(|p| found.contains(p))
    );
}

#[test]
fn tables_keyed_by_the_identifier_are_divided_like_the_rows() {
    let series = |range: std::ops::Range<usize>| {
        lines(
            "id,t,v",
            range.flat_map(|n| (0..3).map(move |t| format!("{n},{t},{}", n + t))),
        )
    };
    let both = lines(
        "id,part,y",
        (0..120).map(|n| {
            if n < 100 {
                format!("{n},train,{n}")
            } else {
                format!("{n},test,")
            }
        }),
    );
    let made = plain(&[
        ("public/train_series.csv", series(0..100)),
        ("public/test_series.csv", series(100..120)),
        ("public/all.csv", both),
        (
            "public/train_notes.csv",
            lines("id,note", (0..100).map(|n| format!("{n},seen"))),
        ),
        ("public/other.csv", "word,meaning\na,b\n".into()),
        ("public/copy.csv", lines("x,y", (0..100).map(|n| format!("{n},yes")))),
    ]);
    let split = made.derive("validation").unwrap();
    let set = |path: &str| made.column(path, "id").into_iter().collect::<BTreeSet<_>>();
    let (kept, held) = (set("public/train.csv"), set("public/test.csv"));
    assert_eq!(set("public/train_series.csv"), kept);
    assert_eq!(set("public/test_series.csv"), held);
    assert_eq!(made.read("public/test_series.csv").len(), 3 * held.len());
    assert_eq!(set("public/train_notes.csv"), kept);
    assert_eq!(set("public/all.csv"), kept.union(&held).cloned().collect());
    for (id, y) in made
        .column("public/all.csv", "id")
        .into_iter()
        .zip(made.column("public/all.csv", "y"))
    {
        assert_eq!(y.is_empty(), held.contains(&id), "{id}");
    }
    let files = made.public_files();
    assert!(
        files.contains("other.csv") && !files.contains("copy.csv"),
        "{:?}",
        split.notes
    );
}

#[test]
fn no_public_file_tells_a_held_out_label() {
    // Labels that are nowhere else in the package, so that any trace of them is a leak.
    let label = |n: usize| format!("secret{n}");
    let made = Made::new(&[
        (
            "public/train.csv",
            lines("id,x,y", (0..100).map(|n| format!("{n},{n},{}", label(n)))),
        ),
        ("public/test.csv", lines("id,x", (100..120).map(|n| format!("{n},{n}")))),
        (
            "public/sample_submission.csv",
            lines("id,y", (100..120).map(|n| format!("{n},none"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,y", (100..120).map(|n| format!("{n},{}", label(n)))),
        ),
        (
            "public/extra/train_more.csv",
            lines("id,z,y", (0..100).map(|n| format!("{n},1,{}", label(n)))),
        ),
        (
            "public/all.csv",
            lines(
                "id,y",
                (0..120).map(|n| format!("{n},{}", if n < 100 { label(n) } else { String::new() })),
            ),
        ),
        (
            "public/plain_copy.csv",
            lines("x,y", (0..100).map(|n| format!("{n},{}", label(n)))),
        ),
    ]);
    made.derive("validation").unwrap();
    let hidden = made.column("private/test_answer.csv", "y");
    assert_eq!(hidden.len(), 20);
    for file in made.public_files() {
        let text = fs::read_to_string(made.dir.path().join("validation/public").join(&file)).unwrap();
        let words: BTreeSet<&str> = text.split([',', '\n']).collect();
        assert!(hidden.iter().all(|h| !words.contains(h.as_str())), "{file}");
    }
}

#[test]
fn ranking_tasks_hold_back_the_last_items() {
    let row = |user: usize, n: usize| format!("{user},{},{}", (user * 13 + n * 7) % 200, 1000 + n);
    let rows = (0..20)
        .flat_map(|user| (0..15).rev().map(move |n| row(user, n)))
        .chain((0..3).map(|n| row(20, n)));
    let made = Made::new(&[
        ("public/train.csv", lines("userId,movieId,timestamp", rows)),
        ("public/test.csv", lines("userId", (0..21).map(|u| u.to_string()))),
        (
            "public/sample_submission.csv",
            lines("userId,movies", (0..21).map(|u| format!("{u},1 2 3"))),
        ),
        (
            "private/test_answer.csv",
            lines("userId,movies", (0..21).map(|u| format!("{u},7 14 21"))),
        ),
        (
            "public/tags.csv",
            lines("userId,movieId,tag", (0..15).map(|n| format!("0,{},t", n * 7))),
        ),
        (
            "public/movies.csv",
            lines("movieId,title", (0..200).map(|n| format!("{n},film"))),
        ),
    ]);
    let split = made.derive("validation").unwrap();
    assert_eq!(split.test_rows, 20, "a user with three rows cannot lose three");
    let answers = made.column("private/test_answer.csv", "movies");
    assert_eq!(answers[0], "84 91 98");
    let train = made.read("public/train.csv");
    let tags = made.read("public/tags.csv");
    for table in [&train, &tags] {
        assert!(
            (0..table.len()).all(|r| table.value(r, 0).unwrap() != "0"
                || !["84", "91", "98"].contains(&table.value(r, 1).unwrap().as_ref()))
        );
    }
    assert_eq!(tags.len(), 12);
    assert_eq!(made.column("public/sample_submission.csv", "movies"), vec!["1 2 3"; 20]);
}

#[test]
fn answers_with_one_column_a_class() {
    let class = |n: usize| ["oak", "elm", "ash"][n % 3];
    let hot = |n: usize| {
        format!(
            "{},{},{}",
            usize::from(n % 3 == 1),
            usize::from(n.is_multiple_of(3)),
            usize::from(n % 3 == 2)
        )
    };
    let made = Made::new(&[
        (
            "public/train.csv",
            lines("id,x,species", (0..60).map(|n| format!("{n},{n},{}", class(n)))),
        ),
        ("public/test.csv", lines("id,x", (60..80).map(|n| format!("{n},{n}")))),
        (
            "public/sample_submission.csv",
            lines("id,elm,oak,ash", (60..80).map(|n| format!("{n},0.3,0.3,0.4"))),
        ),
        (
            "private/test_answer.csv",
            lines("id,elm,oak,ash", (60..80).map(|n| format!("{n},{}", hot(n)))),
        ),
    ]);
    made.derive("validation").unwrap();
    let answers = made.read("private/test_answer.csv");
    for row in 0..answers.len() {
        let cells = answers.row(row);
        let n: usize = cells[0].parse().unwrap();
        assert_eq!(cells[1..].join(","), hot(n));
    }
}

#[test]
fn training_rows_without_identifier_get_their_number() {
    let made = Made::new(&[
        (
            "public/train.csv",
            lines("x,y", (0..50).map(|n| format!("{n},{}", n % 2))),
        ),
        (
            "public/test.csv",
            lines("row_id,x", (0..10).map(|n| format!("{n},{n}"))),
        ),
        (
            "public/sample_submission.csv",
            lines("row_id,y", (0..10).map(|n| format!("{n},0"))),
        ),
        (
            "private/test_answer.csv",
            lines("row_id,y", (0..10).map(|n| format!("{n},0"))),
        ),
    ]);
    made.derive("validation").unwrap();
    for (id, x) in made
        .column("public/test.csv", "row_id")
        .into_iter()
        .zip(made.column("public/test.csv", "x"))
    {
        assert_eq!(id, x);
    }
}

#[test]
fn what_cannot_be_derived_says_why() {
    let made = plain(&[(
        "private/test_answer.csv",
        lines("id,box", (100..120).map(|n| format!("{n},1 2 3"))),
    )]);
    assert!(made.derive("a").unwrap_err().contains("box"));
    let made = plain(&[(
        "public/test.csv",
        lines("id,x,wind", (100..120).map(|n| format!("{n},1,2"))),
    )]);
    assert!(made.derive("a").unwrap_err().contains("wind"));
    let made = plain(&[("public/train_images.npy", "bytes".into())]);
    assert!(made.derive("a").unwrap_err().contains("train_images.npy"));
    let made = plain(&[(
        "public/test_more.csv",
        lines("id,z", (100..120).map(|n| format!("{n},1"))),
    )]);
    assert!(made.derive("a").unwrap_err().contains("test_more.csv"));
    let made = plain(&[("public/train.csv", "id,x,y\n1,2,no\n".into())]);
    assert!(made.derive("a").unwrap_err().contains("rows"));
}
