#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};
use arrow::ipc::reader::StreamReader;

use super::*;

/// A writer that others can look into.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn batch() -> RecordBatch {
    let mut imports = ListBuilder::new(StringBuilder::new());
    imports.append_value([Some("numpy"), Some("sklearn")]);
    imports.append_null();
    imports.append_value([None::<&str>; 0]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("node_id", Arc::new(StringArray::from(vec!["n1", "n2", "n3"]))),
        ("step", Arc::new(Int64Array::from(vec![1, 20, 300]))),
        (
            "score",
            Arc::new(Float64Array::from(vec![Some(0.125), None, Some(f64::NAN)])),
        ),
        ("is_buggy", Arc::new(BooleanArray::from(vec![false, true, true]))),
        (
            "error",
            Arc::new(StringArray::from(vec![
                None,
                Some("KeyError: \"x\"\n\tat line 3\x1b[31m"),
                Some("年龄, ünï"),
            ])),
        ),
        ("imports", Arc::new(imports.finish())),
        (
            "at",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1_764_400_000_123_456), None, Some(0)]).with_timezone("UTC"),
            ),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn print(format: Format, terminal: Terminal, batches: Vec<RecordBatch>) -> Vec<u8> {
    let shared = Shared::default();
    let mut printer = Printer::new(Box::new(shared.clone()), format, terminal, Terminal::PLAIN);
    printer.set_notes(false);
    let output = QueryOutput::of_batches(batches[0].schema(), batches);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(printer.print(output)).unwrap();
    printer.finish().unwrap();
    std::mem::take(&mut *shared.0.lock().unwrap())
}

fn text(format: Format, terminal: Terminal, batches: Vec<RecordBatch>) -> String {
    String::from_utf8(print(format, terminal, batches)).unwrap()
}

fn terminal(width: usize, color: bool) -> Terminal {
    Terminal {
        width: Some(width),
        color,
    }
}

#[test]
fn tables() {
    insta::assert_snapshot!("table_plain", text(Format::Table, Terminal::PLAIN, vec![batch()]));
    insta::assert_snapshot!("table_at_100", text(Format::Table, terminal(100, false), vec![batch()]));
    insta::assert_snapshot!(
        "table_records_at_40",
        text(Format::Table, terminal(40, false), vec![batch()])
    );
    insta::assert_snapshot!(
        "table_colours",
        text(Format::Table, terminal(200, true), vec![batch()]).replace('\x1b', "␛")
    );
    insta::assert_snapshot!(
        "table_empty",
        text(Format::Table, Terminal::PLAIN, vec![batch().slice(0, 0)])
    );
}

#[test]
fn one_row_that_is_too_wide_stands_as_a_record() {
    let row = || vec![batch().slice(1, 1)];
    insta::assert_snapshot!("table_one_row_at_60", text(Format::Table, terminal(60, false), row()));
    insta::assert_snapshot!("table_one_row_plain", text(Format::Table, Terminal::PLAIN, row()));
    let wide = RecordBatch::try_from_iter((0..9).map(|column| {
        let value = StringArray::from(vec!["a value of some length"]);
        (format!("column_{column}"), Arc::new(value) as ArrayRef)
    }));
    let shown = text(Format::Table, Terminal::PLAIN, vec![wide.unwrap()]);
    assert!(
        shown.starts_with(" column_0 │ a value of some length\n column_1 │"),
        "{shown}"
    );
}

#[test]
fn ids_and_numbers_stay_whole() {
    let id = "n427a45c4b3aa5ee88d87";
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("node_id", Arc::new(StringArray::from(vec![id; 2]))),
        ("score", Arc::new(Float64Array::from(vec![0.123_456_789_012; 2]))),
        (
            "error",
            Arc::new(StringArray::from(vec!["words that go over several lines of a cell"; 2])),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let shown = text(Format::Table, terminal(60, false), vec![batch]);
    assert_eq!(shown.matches(id).count(), 2, "{shown}");
    assert_eq!(shown.matches("0.123456789012").count(), 2, "{shown}");
    insta::assert_snapshot!("table_whole_ids", shown);
}

#[test]
fn one_text_of_several_lines_is_written_as_it_is() {
    let program = StringArray::from(vec!["import a\n\tprint(1)\x1b[31m\n"]);
    let batch = RecordBatch::try_from_iter([("code", Arc::new(program) as ArrayRef)]).unwrap();
    assert_eq!(
        text(Format::Table, terminal(30, false), vec![batch.clone()]),
        "import a\n\tprint(1)␛[31m\n"
    );
    let two = text(Format::Table, terminal(30, false), vec![batch.clone(), batch]);
    assert!(two.starts_with(" code\n"), "{two}");
}

#[test]
fn times_and_numbers_as_people_say_them() {
    for (seconds, said) in [
        (0.0, "0 s"),
        (0.351, "0.35 s"),
        (4.24, "4.2 s"),
        (9.96, "10 s"),
        (52.4, "52 s"),
        (59.7, "1 min 0 s"),
        (190.0, "3 min 10 s"),
        (3_599.6, "1 h 0 min"),
        (7_500.0, "2 h 5 min"),
    ] {
        assert_eq!(duration(seconds), said);
    }
    assert_eq!(score(0.992_666_666_666_7), "0.992667");
    assert_eq!((score(2.5), score(-0.000_012_345)), ("2.5".into(), "-1.234e-5".into()));
    assert_eq!(thousands(1_234_567), "1,234,567");
    assert_eq!(thousands(-999), "-999");
    assert_eq!(
        (counted(1, "job"), counted(0, "job")),
        ("1 job".into(), "0 jobs".into())
    );
}

#[test]
fn a_table_is_never_wider_than_its_terminal() {
    use unicode_width::UnicodeWidthStr;

    for width in 30..160 {
        for line in text(Format::Table, terminal(width, false), vec![batch()]).lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn json_is_one_array_over_all_batches() {
    let json = text(
        Format::Json,
        Terminal::PLAIN,
        vec![batch(), batch().slice(0, 0), batch()],
    );
    insta::assert_snapshot!("json", json);
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 6);
    assert_eq!(rows[2]["score"], serde_json::Value::Null, "NaN is no JSON");
    assert_eq!(text(Format::Json, Terminal::PLAIN, vec![batch().slice(0, 0)]), "[]\n");
}

#[test]
fn csv_has_one_header() {
    insta::assert_snapshot!(
        "csv",
        text(Format::Csv, Terminal::PLAIN, vec![batch(), batch().slice(1, 1)])
    );
    assert_eq!(
        text(Format::Csv, Terminal::PLAIN, vec![batch().slice(0, 0)]),
        "node_id,step,score,is_buggy,error,imports,at\n"
    );
}

#[test]
fn arrow_is_read_back() {
    let bytes = print(Format::Arrow, Terminal::PLAIN, vec![batch(), batch()]);
    let batches: Vec<RecordBatch> = StreamReader::try_new(bytes.as_slice(), None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(batches.len(), 2);
    // NaN is not equal to itself, so the score is left out.
    let without_score = |batch: &RecordBatch| batch.project(&[0, 1, 3, 4, 5, 6]).unwrap();
    assert_eq!(without_score(&batches[1]), without_score(&batch()));
}

#[test]
fn arrow_is_refused_on_a_terminal_and_holds_one_result() {
    let refused = Printer::stdout(Format::Arrow, terminal(80, true), Terminal::PLAIN);
    assert!(matches!(refused, Err(CliError::Usage(_))));
    let mut printer = Printer::new(
        Box::new(Shared::default()),
        Format::Arrow,
        Terminal::PLAIN,
        Terminal::PLAIN,
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let output = || QueryOutput::of_batches(batch().schema(), vec![batch()]);
    runtime.block_on(printer.print(output())).unwrap();
    assert!(matches!(
        runtime.block_on(printer.print(output())),
        Err(CliError::Usage(_))
    ));
}

#[test]
fn differences_and_programs() {
    let old = "import a\nx = 1\ny = 2\nz = 3\nq = 4\nw = 5\nprint(x)\n";
    let new = "import a\nimport b\nx = 1\ny = 2\nz = 3\nq = 4\nw = 5\nprint(x, y)\n";
    insta::assert_snapshot!("diff", unified_diff(("n1", old), ("n2", new), Terminal::PLAIN));
    let coloured = unified_diff(("n1", "a\n"), ("n2", "b\n"), terminal(80, true));
    insta::assert_snapshot!("diff_colours", coloured.replace('\x1b', "␛"));
    assert_eq!(unified_diff(("n1", old), ("n2", old), Terminal::PLAIN), "");
    insta::assert_snapshot!("numbered", numbered(&"line\n".repeat(11), Terminal::PLAIN));
    insta::assert_snapshot!(
        "wrapped",
        wrapped("A plan of several words that must be broken.\n\nAnd more.", "  ", 30)
    );
}
