//! Values as Python writes them. Templates are written for it, and models were trained on what it wrote.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// The filter `tojson`: `json.dumps` with the options that templates use. Unlike Jinja's own it escapes nothing for HTML.
pub(super) fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson takes two separators")),
        None => ((if indent.is_some() { "," } else { ", " }).to_owned(), ": ".to_owned()),
    };
    let json = JsonWriter {
        indent,
        item,
        key,
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = String::new();
    json.write(&mut out, value, 0)?;
    Ok(Value::from(out))
}

struct JsonWriter {
    indent: Option<usize>,
    item: String,
    key: String,
    ascii: bool,
    sort: bool,
}

impl JsonWriter {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => number(out, value),
            ValueKind::String => self.string(out, value.as_str().unwrap_or_default()),
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort {
                    keys.sort();
                }
                self.group(out, ['{', '}'], keys, depth, |out, key| {
                    self.string(out, &key.to_string());
                    out.push_str(&self.key);
                    self.write(out, &value.get_item(key)?, depth + 1)
                })?;
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let values: Vec<Value> = value.try_iter()?.collect();
                self.group(out, ['[', ']'], values, depth, |out, value| {
                    self.write(out, value, depth + 1)
                })?;
            }
            other => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("tojson cannot write a value of type {other}"),
                ));
            }
        }
        Ok(())
    }

    fn group(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        values: Vec<Value>,
        depth: usize,
        write: impl Fn(&mut String, &Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent * depth));
            }
        };
        out.push(open);
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                out.push_str(&self.item);
            }
            line(out, depth + 1);
            write(out, value)?;
        }
        if !values.is_empty() {
            line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn string(&self, out: &mut String, text: &str) {
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                character if character < ' ' || self.ascii && !character.is_ascii() => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                character => out.push(character),
            }
        }
        out.push('"');
    }
}

/// A number: floats have a point or an exponent of at least two digits.
fn number(out: &mut String, value: &Value) {
    if value.is_integer() {
        let _ = write!(out, "{value}");
        return;
    }
    let text = format!("{:?}", f64::try_from(value.clone()).unwrap_or(f64::NAN));
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent
                .strip_prefix('-')
                .map_or(('+', exponent), |digits| ('-', digits));
            let _ = write!(out, "{mantissa}e{sign}{digits:0>2}");
        }
        None => out.push_str(match text.as_str() {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            text => text,
        }),
    }
}

/// A value that a template prints: `str()`.
pub(super) fn print(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => out.push_str(&value.to_string()),
        _ => repr(out, value)?,
    }
    Ok(())
}

/// A value in a list or dictionary that a template prints: `repr()`.
fn repr(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => number(out, value),
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(out, &item)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                repr(out, &key)?;
                out.push_str(": ");
                repr(out, &value.get_item(&key)?)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if character == quote => {
                out.push('\\');
                out.push(character);
            }
            character if character.is_control() => {
                let _ = write!(out, "\\x{:02x}", character as u32);
            }
            character => out.push(character),
        }
    }
    out.push(quote);
}
