//! SQL functions about programs.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::cast::as_string_view_array;
use datafusion_macros::user_doc;

use super::CodeProfile;
use crate::Function;
use crate::scalar::{exact, map_text, scalar, scalar_function, text_pairs};

/// Functions of this family.
pub fn functions() -> Vec<Function> {
    vec![
        scalar(PythonImports::default()),
        scalar(MethodFamily::default()),
        scalar(CodeFingerprint::default()),
        scalar(CodeSimilarity::default()),
        scalar(UnifiedDiff::default()),
        scalar(ErrorSignature::default()),
    ]
}

scalar_function!(
    /// `python_imports(code)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "Top-level modules that a Python program imports, sorted, each once. Programs with syntax errors still give their imports.",
        syntax_example = "python_imports(code)",
        sql_example = "SELECT python_imports('import os, numpy.linalg as la'); -- [numpy, os]",
        argument(name = "code", description = "Text of a Python program.")
    )]
    PythonImports,
    "python_imports",
    exact(&[("code", DataType::Utf8View)]),
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
    python_imports
);

fn python_imports(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for code in as_string_view_array(&columns[0])? {
        if let Some(code) = code {
            for module in super::python_imports(code) {
                lists.values().append_value(module);
            }
        }
        lists.append(code.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

scalar_function!(
    /// `method_family(code)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "Method families of a program joined by `+`: catboost, lightgbm, xgboost, transformers, neural_net, cv, nlp, time_series, automl, ensemble; `sklearn` when it imports scikit-learn and nothing else is known, otherwise `unknown`. Only imports and names count, not comments and strings.",
        syntax_example = "method_family(code)",
        sql_example = "SELECT method_family('import torch, lightgbm'); -- lightgbm+neural_net",
        argument(name = "code", description = "Text of a Python program.")
    )]
    MethodFamily,
    "method_family",
    exact(&[("code", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |code| Some(Cow::Owned(super::method_family(code)))) }
);

scalar_function!(
    /// `code_fingerprint(code)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "SHA-256, in hexadecimal, of a program without comments, layout and docstrings; programs that differ in nothing else have equal fingerprints.",
        syntax_example = "code_fingerprint(code)",
        sql_example = "SELECT code_fingerprint('x=1') = code_fingerprint('x = 1  # one'); -- true",
        argument(name = "code", description = "Text of a Python program.")
    )]
    CodeFingerprint,
    "code_fingerprint",
    exact(&[("code", DataType::Utf8View)]),
    DataType::Utf8,
    |columns: &[ArrayRef]| { map_text(&columns[0], |code| Some(Cow::Owned(super::code_fingerprint(code)))) }
);

scalar_function!(
    /// `code_similarity(a, b)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "Share of runs of three tokens that two programs have in common, from 0 to 1. Comments, layout and docstrings do not count.",
        syntax_example = "code_similarity(a, b)",
        sql_example = "SELECT code_similarity('x = 1', 'x=1'); -- 1",
        argument(name = "a", description = "Text of a Python program."),
        argument(name = "b", description = "Text of a Python program.")
    )]
    CodeSimilarity,
    "code_similarity",
    exact(&[("a", DataType::Utf8View), ("b", DataType::Utf8View)]),
    DataType::Float64,
    code_similarity
);

fn code_similarity(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut similarities = Float64Builder::with_capacity(columns[0].len());
    // Joins repeat one side row after row; it is read once.
    let (mut left_seen, mut right_seen) = (None, None);
    for pair in text_pairs(columns)? {
        similarities
            .append_option(pair.map(|(a, b)| profile(&mut left_seen, a).similarity(profile(&mut right_seen, b))));
    }
    Ok(Arc::new(similarities.finish()))
}

fn profile<'a, 'b>(seen: &'b mut Option<(&'a str, CodeProfile<'a>)>, code: &'a str) -> &'b CodeProfile<'a> {
    if seen.as_ref().is_some_and(|(text, _)| *text != code) {
        *seen = None;
    }
    &seen.get_or_insert_with(|| (code, CodeProfile::read(code))).1
}

scalar_function!(
    /// `unified_diff(a, b)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "Unified diff that turns text `a` into text `b`, with three lines of context; empty when they are equal.",
        syntax_example = "unified_diff(a, b)",
        sql_example = "SELECT unified_diff(parent.code, child.code) FROM parent, child;",
        argument(name = "a", description = "Old text."),
        argument(name = "b", description = "New text.")
    )]
    UnifiedDiff,
    "unified_diff",
    exact(&[("a", DataType::Utf8View), ("b", DataType::Utf8View)]),
    DataType::Utf8,
    unified_diff
);

fn unified_diff(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut diffs = StringBuilder::with_capacity(columns[0].len(), 0);
    for pair in text_pairs(columns)? {
        diffs.append_option(pair.map(|(a, b)| super::unified_diff(a, b)));
    }
    Ok(Arc::new(diffs.finish()))
}

scalar_function!(
    /// `error_signature(status, log)`.
    #[user_doc(
        doc_section(label = "Programs"),
        description = "Signature of a failed run; equal signatures are the same fault. The status decides about what the executor saw (timeout, oom, killed, code_missing, submission_missing, metric_or_answer_missing, sandbox_unconfirmed). Otherwise the last exception in the log decides: import_error, column_mismatch, key_error, file_error, submission_missing, submission_format, shape_error, dtype_error, cuda_out_of_memory, cuda_error, memory_error, metric_error or the exception's own name such as value_error. NULL for a success and when no fault shows. A NULL log counts as an empty one.",
        syntax_example = "error_signature(status, log)",
        sql_example = "SELECT error_signature('code_execution_error', 'ModuleNotFoundError: No module named q'); -- import_error",
        argument(name = "status", description = "Result state of the run."),
        argument(name = "log", description = "What the run printed.")
    )]
    ErrorSignature,
    "error_signature",
    exact(&[("status", DataType::Utf8View), ("log", DataType::Utf8View)]),
    DataType::Utf8,
    error_signature
);

fn error_signature(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let mut signatures = StringBuilder::with_capacity(columns[0].len(), 0);
    for (status, log) in as_string_view_array(&columns[0])?
        .iter()
        .zip(as_string_view_array(&columns[1])?)
    {
        signatures.append_option(status.and_then(|status| super::error_signature(status, log.unwrap_or_default())));
    }
    Ok(Arc::new(signatures.finish()))
}
