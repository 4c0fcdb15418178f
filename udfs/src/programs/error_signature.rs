//! Signature of a failure: equal signatures are the same fault.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::{RaisedException, last_exception};

/// Signature of a failed run, or nothing when it succeeded or shows no fault.
///
/// What the executor says decides about its own ends: `timeout`, `code_missing`, `submission_missing`,
/// `metric_or_answer_missing`, `sandbox_unconfirmed`, `oom` and `killed` are signatures of their own. Otherwise the last
/// exception in the log decides: `import_error`, `column_mismatch`, `key_error`, `file_error`, `submission_missing`,
/// `submission_format`, `shape_error`, `dtype_error`, `cuda_out_of_memory`, `cuda_error`, `memory_error`,
/// `metric_error`, or the exception's own name such as `value_error`. Words in the log outside an exception do not
/// count.
pub fn error_signature(status: &str, log: &str) -> Option<String> {
    let status = status.trim().to_ascii_lowercase();
    match status.as_str() {
        "success" => None,
        "timeout"
        | "code_missing"
        | "submission_missing"
        | "metric_or_answer_missing"
        | "sandbox_unconfirmed"
        | "oom"
        | "killed" => Some(status),
        _ => match last_exception(log) {
            Some(exception) => Some(signature_of(&exception)),
            None if matches!(status.as_str(), "code_execution_error" | "scoring_failed") => Some(status),
            None => None,
        },
    }
}

fn signature_of(exception: &RaisedException<'_>) -> String {
    let name = exception.class_name();
    let message = exception.message.to_lowercase();
    if matches!(name, "ModuleNotFoundError" | "ImportError") {
        return "import_error".to_owned();
    }
    let class = if is_cuda(exception, &message) {
        if message.contains("out of memory") || name.starts_with("OutOfMemory") {
            "cuda_out_of_memory"
        } else {
            "cuda_error"
        }
    } else if is_memory(name, &message) {
        "memory_error"
    } else if matches!(
        name,
        "FileNotFoundError" | "IsADirectoryError" | "NotADirectoryError" | "PermissionError"
    ) {
        if message.contains("submission.csv") {
            "submission_missing"
        } else {
            "file_error"
        }
    } else if name.contains("Submission") || SUBMISSION.is_match(&message) {
        "submission_format"
    } else if is_column(exception, &message) {
        "column_mismatch"
    } else if name == "KeyError" {
        "key_error"
    } else if SHAPE.is_match(&message) {
        "shape_error"
    } else if DTYPE.is_match(&message) {
        "dtype_error"
    } else if exception.innermost_file.contains("sklearn/metrics") || exception.innermost_file.ends_with("metric.py") {
        "metric_error"
    } else {
        return snake_case(name);
    };
    class.to_owned()
}

fn is_cuda(exception: &RaisedException<'_>, message: &str) -> bool {
    exception.name.starts_with("torch.cuda.")
        || ["cuda", "cudnn", "cublas", "device-side assert"]
            .iter()
            .any(|word| message.contains(word))
}

fn is_memory(name: &str, message: &str) -> bool {
    name.ends_with("MemoryError") || message.contains("unable to allocate") || message.contains("can't allocate memory")
}

fn is_column(exception: &RaisedException<'_>, message: &str) -> bool {
    COLUMN.is_match(message) || (exception.class_name() == "KeyError" && exception.innermost_file.contains("pandas/"))
}

/// `ZeroDivisionError` -> `zero_division_error`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut previous_is_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && previous_is_lower {
            snake.push('_');
        }
        previous_is_lower = letter.is_lowercase() || letter.is_ascii_digit();
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[allow(clippy::expect_used, reason = "the patterns are constants that the tests compile")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("constant pattern")
}

static SUBMISSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bsubmissions?\b"));
static COLUMN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:use)?col(?:umn)?s?\b|\bnot in index\b|\bnot found in axis\b|\bfeature names?\b|\bfeatures? .*\bmissing\b",
    )
});
static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\bshapes?\b|\bdimensions?\b|\bbroadcast|\binconsistent numbers? of samples\b|\bsize of tensor\b|\bsizes? mismatch\b|\bexpected [0-9]d\b|\b[0-9]d array\b|\bhas \d+ features?\b|\bsame length\b|\blength mismatch\b|\blength of values\b|\bmust be equal\b",
    )
});
static DTYPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\bdtypes?\b|\bcould not convert\b|\bcannot convert\b|\bcan't convert\b|\bcannot cast\b|\bscalar type\b|\binvalid literal for\b|\bunsupported operand types?\b",
    )
});

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::error_signature;

    fn of(exception: &str) -> Option<String> {
        let log = format!(
            "Final Validation Score: 0.5\nTraceback (most recent call last):\n  File \"run.py\", line 2, in <module>\n    go()\n{exception}\n"
        );
        error_signature("code_execution_error", &log)
    }

    #[test]
    fn the_executor_decides_first() {
        assert_eq!(error_signature("success", "ValueError: x"), None);
        assert_eq!(error_signature("timeout", "ValueError: x").as_deref(), Some("timeout"));
        assert_eq!(error_signature("oom", "").as_deref(), Some("oom"));
        assert_eq!(
            error_signature("code_execution_error", "Segmentation fault").as_deref(),
            Some("code_execution_error")
        );
        assert_eq!(
            error_signature("scoring_failed", "Final Validation Score: 1").as_deref(),
            Some("scoring_failed")
        );
        assert_eq!(error_signature("failed", "the job timed out, column missing"), None);
    }

    #[test]
    fn exceptions_have_classes() {
        for (exception, signature) in [
            ("ModuleNotFoundError: No module named 'q'", "import_error"),
            ("KeyError: \"['age'] not in index\"", "column_mismatch"),
            ("KeyError: 'fold'", "key_error"),
            ("ValueError: Usecols do not match columns", "column_mismatch"),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
                "file_error",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: './submission.csv'",
                "submission_missing",
            ),
            ("InvalidSubmissionError: row count", "submission_format"),
            (
                "ValueError: operands could not be broadcast together with shapes (3,) (4,)",
                "shape_error",
            ),
            ("ValueError: could not convert string to float: 'abc'", "dtype_error"),
            ("torch.cuda.OutOfMemoryError: CUDA out of memory", "cuda_out_of_memory"),
            ("RuntimeError: CUDA error: invalid device ordinal", "cuda_error"),
            (
                "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB",
                "memory_error",
            ),
            ("ValueError: bad value", "value_error"),
            ("ZeroDivisionError: division by zero", "zero_division_error"),
            ("AssertionError", "assertion_error"),
        ] {
            assert_eq!(of(exception).as_deref(), Some(signature), "{exception}");
        }
    }

    #[test]
    fn frames_count() {
        let log = "Traceback (most recent call last):\n  File \"run.py\", line 9, in <module>\n    auc(y, p)\n  File \"/lib/sklearn/metrics/_ranking.py\", line 3, in roc_auc_score\n    raise ValueError(m)\nValueError: Only one class present in y_true.\n";
        assert_eq!(error_signature("failed", log).as_deref(), Some("metric_error"));
        let log = "Traceback (most recent call last):\n  File \"run.py\", line 9, in <module>\n    df['age']\n  File \"/lib/pandas/core/indexes/base.py\", line 3, in get_loc\n    raise KeyError(key)\nKeyError: 'age'\n";
        assert_eq!(error_signature("failed", log).as_deref(), Some("column_mismatch"));
    }
}
