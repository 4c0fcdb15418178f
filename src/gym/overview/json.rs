//! JSON: one object a line, a list of objects, or one object.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::columns::{ColumnStats, described};
use super::read::{Part, Reader};
use super::{FileOverview, NAME_CHARS, SUMMARY_CHARS, line};

/// Objects that are looked at.
const MOST_ROWS: usize = 20_000;
/// Keys that are told apart.
const MOST_KEYS: usize = 1_000;
/// Bytes of a document that is read as a whole.
const MOST_BYTES: usize = 8 << 20;
/// Keys of an object that are named.
const NAMED_KEYS: usize = 20;

pub(super) fn describe(path: &str, out: &mut FileOverview, reader: &mut Reader) -> Result<(), String> {
    let Part { bytes, is_whole } = reader.part(path)?;
    let format = out.format.trim_end_matches(".gz");
    if matches!(format, "jsonl" | "ndjson") {
        return lines(&bytes, is_whole, out);
    }
    if !is_whole || bytes.len() > MOST_BYTES {
        return Err("not read: one JSON document of that size".to_owned());
    }
    let json: Json = serde_json::from_slice(&bytes).map_err(|error| format!("no valid JSON: {error}"))?;
    match &json {
        Json::Array(items) if items.iter().any(Json::is_object) => {
            out.rows = Some(items.len() as i64);
            out.rows_exact = true;
            let mut keys = Keys::default();
            items.iter().take(MOST_ROWS).for_each(|item| keys.add(item));
            keys.finish(out);
        }
        Json::Array(items) => {
            let first = items.iter().take(3).map(Json::to_string).collect::<Vec<_>>().join(", ");
            out.summary = Some(format!("a list of {} values: {}", items.len(), line(&first, 120)));
        }
        Json::Object(fields) => {
            let names: Vec<String> = fields
                .keys()
                .take(NAMED_KEYS)
                .map(|key| line(key, NAME_CHARS))
                .collect();
            let text = format!("an object of {} keys: {}", fields.len(), names.join(", "));
            out.summary = Some(line(&text, SUMMARY_CHARS));
        }
        other => out.summary = Some(line(&other.to_string(), 120)),
    }
    Ok(())
}

fn lines(bytes: &[u8], is_whole: bool, out: &mut FileOverview) -> Result<(), String> {
    let is_line = |line: &&[u8]| !line.iter().all(u8::is_ascii_whitespace);
    let all = bytes.split(|byte| *byte == b'\n').filter(is_line).count();
    // The last line of a part may be cut.
    let complete = if is_whole { all } else { all.saturating_sub(1) };
    let mut keys = Keys::default();
    let mut broken = 0usize;
    let taken = complete.min(MOST_ROWS);
    for line in bytes.split(|byte| *byte == b'\n').filter(is_line).take(taken) {
        match serde_json::from_slice::<Json>(line) {
            Ok(json) => keys.add(&json),
            Err(_) => broken += 1,
        }
    }
    if broken == taken && taken > 0 {
        return Err("no line of it is valid JSON".to_owned());
    }
    out.rows_exact = is_whole;
    out.rows = Some(if is_whole {
        all as i64
    } else {
        (complete as f64 * out.bytes as f64 / bytes.len().max(1) as f64).round() as i64
    });
    if broken > 0 {
        out.note = Some(format!("{broken} of {taken} lines are no valid JSON"));
    } else if taken < all {
        out.note = Some(format!("key facts are of the first {taken} lines"));
    }
    keys.finish(out);
    Ok(())
}

/// Keys of objects as columns, in the order of their first occurrence.
#[derive(Default)]
struct Keys {
    rows: u64,
    places: HashMap<String, usize>,
    stats: Vec<ColumnStats>,
    others: usize,
}

impl Keys {
    fn add(&mut self, json: &Json) {
        let Json::Object(fields) = json else {
            self.others += 1;
            return;
        };
        for (key, value) in fields {
            let place = match self.places.get(key) {
                Some(place) => *place,
                None if self.stats.len() >= MOST_KEYS => continue,
                None => {
                    let mut stats = ColumnStats::new(key);
                    stats.fill(self.rows);
                    self.stats.push(stats);
                    self.places.insert(key.clone(), self.stats.len() - 1);
                    self.stats.len() - 1
                }
            };
            let stats = &mut self.stats[place];
            match value {
                Json::Null => stats.add(""),
                Json::String(text) => stats.add(text),
                Json::Array(_) => stats.add_nested("list", &value.to_string()),
                Json::Object(_) => stats.add_nested("object", &value.to_string()),
                other => stats.add(&other.to_string()),
            }
        }
        self.rows += 1;
        let rows = self.rows;
        self.stats.iter_mut().for_each(|stats| stats.fill(rows));
    }

    fn finish(self, out: &mut FileOverview) {
        out.columns = Some(self.stats.len() as i64);
        let (shown, left_out) = described(self.stats);
        out.column_facts = shown.into_iter().map(ColumnStats::finish).collect();
        out.columns_left_out = left_out;
        if self.others > 0 {
            out.summary = Some(format!("{} entries are no objects", self.others));
        }
    }
}
