//! Real tasks on disk: predict the double of a number. The metric is the mean absolute error, lower is better.

use std::path::Path;
use std::process::Command;

use clade_catalog::{Store, StoreOptions, Txn};

use crate::cli::fixture::{Outcome, Place, finish};
use crate::engine::fixture::task_rows;
use crate::sandbox::support::python;

const METRIC: &str = "import numpy as np


class DoubleMetrics:
    higher_is_better = False

    def validate_submission(self, submission, ground_truth):
        if list(submission.columns) != ['id', 'y']:
            raise ValueError(f'the columns must be id and y, found {list(submission.columns)}')

    def evaluate(self, y_true=None, y_pred=None):
        pairs = y_true.merge(y_pred, on='id')
        return float(np.mean(np.abs(pairs['y_x'].to_numpy() - pairs['y_y'].to_numpy())))
";

/// A program that predicts with an expression of `x` and then does something more.
pub fn predicts(expression: &str, more: &str) -> String {
    format!(
        "import csv, os
with open(os.path.join(os.environ['DATA_DIR'], 'test.csv')) as file:
    rows = [(row['id'], float(row['x'])) for row in csv.DictReader(file)]
with open('submission.csv', 'w') as file:
    file.write('id,y\\n' + ''.join(f'{{id}},{{{expression}}}\\n' for id, x in rows))
{more}
"
    )
}

/// Writes the package as a user keeps it: public data, hidden answers, metric.
pub fn write_package(root: &Path) {
    let write = |path: &str, text: String| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let table = |header: &str, row: &dyn Fn(i32) -> String, ids: std::ops::Range<i32>| {
        let rows: String = ids.map(row).collect();
        format!("{header}\n{rows}")
    };
    let (train, test) = (0..60, 100..110);
    write(
        "data/public/description.txt",
        "# Double it\n\nPredict y from x. The metric is the mean absolute error.\n".to_owned(),
    );
    write(
        "data/public/train.csv",
        table("id,x,y", &|id| format!("{id},{id}.5,{}\n", 2 * id + 1), train),
    );
    write(
        "data/public/test.csv",
        table("id,x", &|id| format!("{id},{id}.5\n"), test.clone()),
    );
    write(
        "data/public/sample_submission.csv",
        table("id,y", &|id| format!("{id},0\n"), test.clone()),
    );
    write(
        "data/private/test_answer.csv",
        table("id,y", &|id| format!("{id},{}\n", 2 * id + 1), test),
    );
    write("utils/metric.py", METRIC.to_owned());
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// A place with a store that has the task `double`, in a folder whose name is awkward.
pub struct Gym {
    pub place: Place,
}

/// Folder of the package in the store.
const PACKAGE: &str = "tasks/double/p1";
/// Folder of the store, given on the command line.
const STORE: &str = "a störe, with spaces";

impl Gym {
    pub fn new() -> Self {
        let place = Place::new();
        place.run(["init", "--store", STORE]).ok();
        let root = place.path().join(STORE).join(PACKAGE);
        write_package(&root);
        // The validation split is the test itself: what is tested here is not the split.
        for part in ["public", "private"] {
            let (from, to) = (root.join("data").join(part), root.join("validation").join(part));
            std::fs::create_dir_all(&to).unwrap();
            for entry in std::fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
        let store = Store::open(place.path().join(STORE), StoreOptions::default()).unwrap();
        let mut txn = Txn::new();
        txn.append("gym.tasks", task_rows("double", PACKAGE, false));
        block_on(store.commit(txn)).unwrap();
        drop(store);
        Self { place }
    }

    /// Folder of the package in the store.
    pub fn package(&self) -> std::path::PathBuf {
        self.place.path().join(STORE).join(PACKAGE)
    }

    /// The bytes that a hash of this store names.
    pub fn blob(&self, hash: &str) -> Vec<u8> {
        let options = StoreOptions {
            read_only: true,
            ..StoreOptions::default()
        };
        let store = Store::open(self.place.path().join(STORE), options).unwrap();
        block_on(store.get_blob(hash)).unwrap()
    }

    /// A command on this store with the interpreter of the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments.iter().chain(&["--store", STORE]));
        command.env("CLADE_PYTHON", python());
        command
    }

    /// Runs a command.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        finish(&mut self.command(arguments), "")
    }

    /// Runs a program as a candidate.
    pub fn exec(&self, code: &str, arguments: &[&str]) -> Outcome {
        self.place.write("candidate.py", code);
        let command = ["exec", "candidate.py", "--task", "double", "--format", "json"];
        self.run(&command.iter().chain(arguments).copied().collect::<Vec<_>>())
    }

    /// The rows of a query.
    pub fn rows(&self, sql: &str) -> serde_json::Value {
        let text = self.run(&["sql", "--read-only", "-c", sql, "--format", "json"]).ok();
        serde_json::from_str(&text).unwrap()
    }

    /// The column `n` of a query's only row.
    pub fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0]["n"].as_i64().unwrap()
    }
}
