//! Option lists `(name => value, …)`: values, types, ranges, and the table that makes a typed struct of them.

use std::fmt;
use std::time::Duration;

use datafusion::sql::sqlparser::tokenizer::Location;

use super::duration;

/// The value of an option as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A number, kept as its text.
    Number(String),
    /// A quoted text.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
}

impl OptionValue {
    /// The value that a text without quotes stands for, as the command line has it.
    pub fn of(text: &str) -> Self {
        match text {
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ if text.parse::<f64>().is_ok_and(f64::is_finite) => Self::Number(text.to_owned()),
            _ => Self::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&quote(text)),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

/// `text` as an SQL string literal.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// One `name => value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionItem {
    /// Name, in lower case.
    pub name: String,
    /// Value.
    pub value: OptionValue,
    /// Place of the name in the user's text; line 0 when there is no text.
    pub at: Location,
}

impl OptionItem {
    /// An option that does not come from a text with positions.
    pub fn unplaced(name: impl Into<String>, value: OptionValue) -> Self {
        Self {
            name: name.into(),
            value,
            at: Location { line: 0, column: 0 },
        }
    }
}

/// An option that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    /// What is wrong, with the names or the range that would be right.
    pub message: String,
    /// Place of the option's name; line 0 when there is no text.
    pub at: Location,
}

/// The values an option may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Any value of its type.
    Any,
    /// From the first to the second, both included.
    Within(f64, f64),
    /// The bound or more.
    AtLeast(f64),
    /// More than the bound.
    Above(f64),
    /// More than the first, up to and including the second.
    AboveUpTo(f64, f64),
}

impl Range {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Any => value.is_finite(),
            Self::Within(low, high) => (low..=high).contains(&value),
            Self::AtLeast(low) => value.is_finite() && value >= low,
            Self::Above(low) => value.is_finite() && value > low,
            Self::AboveUpTo(low, high) => value > low && value <= high,
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Within(low, high) => write!(f, " from {low} to {high}"),
            Self::AtLeast(low) => write!(f, " of {low} or more"),
            Self::Above(low) => write!(f, " above {low}"),
            Self::AboveUpTo(low, high) => write!(f, " above {low}, up to {high}"),
        }
    }
}

/// Name, type and meaning of an option, for errors and for the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionSpec {
    /// Name.
    pub name: &'static str,
    /// Type in words.
    pub kind: &'static str,
    /// Values it may take.
    pub range: Range,
    /// What it does, with its unit.
    pub doc: &'static str,
}

/// A Rust type that an option can have.
pub(super) trait OptionType: Sized {
    /// The type in words, as an error says it.
    const KIND: &'static str;
    /// Take a value; `None` when it has the wrong type or is out of range.
    fn read(value: &OptionValue, range: Range) -> Option<Self>;
    /// The value as it would be written.
    fn write(&self) -> OptionValue;
    /// The value as JSON; what [`OptionType::read`] takes back.
    fn json(&self) -> serde_json::Value {
        match self.write() {
            OptionValue::Number(text) => serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)),
            OptionValue::Text(text) => serde_json::Value::String(text),
            OptionValue::Bool(value) => serde_json::Value::Bool(value),
        }
    }
}

impl OptionType for u64 {
    const KIND: &'static str = "a whole number";

    fn read(value: &OptionValue, range: Range) -> Option<Self> {
        let OptionValue::Number(text) = value else { return None };
        // Tables keep such numbers as 64-bit signed integers.
        text.parse::<i64>()
            .ok()
            .filter(|number| range.holds(*number as f64))
            .and_then(|number| Self::try_from(number).ok())
    }

    fn write(&self) -> OptionValue {
        OptionValue::Number(self.to_string())
    }
}

impl OptionType for f64 {
    const KIND: &'static str = "a number";

    fn read(value: &OptionValue, range: Range) -> Option<Self> {
        let OptionValue::Number(text) = value else { return None };
        text.parse::<Self>()
            .ok()
            .filter(|number| number.is_finite() && range.holds(*number))
    }

    fn write(&self) -> OptionValue {
        OptionValue::Number(self.to_string())
    }
}

impl OptionType for bool {
    const KIND: &'static str = "true or false";

    fn read(value: &OptionValue, _range: Range) -> Option<Self> {
        match value {
            OptionValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn write(&self) -> OptionValue {
        OptionValue::Bool(*self)
    }
}

impl OptionType for Duration {
    const KIND: &'static str = "a duration (seconds as a number, or text such as '30 s', '10 min', '2 h')";

    fn read(value: &OptionValue, range: Range) -> Option<Self> {
        let (OptionValue::Number(text) | OptionValue::Text(text)) = value else {
            return None;
        };
        duration::parse(text).filter(|duration| range.holds(duration.as_secs_f64()))
    }

    fn write(&self) -> OptionValue {
        OptionValue::Text(duration::format(*self))
    }

    fn json(&self) -> serde_json::Value {
        serde_json::Value::from(self.as_secs_f64())
    }
}

/// An id the user chose: 1 to 128 letters, digits and `_ . : -`.
impl OptionType for String {
    const KIND: &'static str = "a text of 1 to 128 letters, digits and the characters _ . : -";

    fn read(value: &OptionValue, _range: Range) -> Option<Self> {
        let OptionValue::Text(text) = value else { return None };
        let allowed = |character: char| character.is_ascii_alphanumeric() || "_.:-".contains(character);
        ((1..=128).contains(&text.len()) && text.chars().all(allowed)).then(|| text.clone())
    }

    fn write(&self) -> OptionValue {
        OptionValue::Text(self.clone())
    }
}

/// Read one option, or say what it must be.
pub(super) fn read<T: OptionType>(item: &OptionItem, range: Range) -> Result<T, OptionError> {
    T::read(&item.value, range).ok_or_else(|| OptionError {
        message: format!("option {} must be {}{range}, found {}", item.name, T::KIND, item.value),
        at: item.at,
    })
}

/// The error for a name that the table does not have.
pub(super) fn unknown(item: &OptionItem, statement: &str, specs: &[OptionSpec]) -> OptionError {
    let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    OptionError {
        message: format!(
            "unknown option {}: the options of {statement} are {}",
            item.name,
            known.join(", ")
        ),
        at: item.at,
    }
}

/// Refuse a name that stands twice.
pub(super) fn refuse_duplicates(items: &[OptionItem]) -> Result<(), OptionError> {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().any(|earlier| earlier.name == item.name) {
            return Err(OptionError {
                message: format!("option {} is given twice", item.name),
                at: item.at,
            });
        }
    }
    Ok(())
}

/// Options as they were stored: a JSON object of numbers, texts and booleans.
pub(super) fn items_from_json(value: &serde_json::Value) -> Result<Vec<OptionItem>, OptionError> {
    let fault = |message: String| OptionError {
        message,
        at: Location { line: 0, column: 0 },
    };
    let object = value
        .as_object()
        .ok_or_else(|| fault(format!("stored options must be a JSON object, found {value}")))?;
    object
        .iter()
        .map(|(name, value)| {
            let value = match value {
                serde_json::Value::Number(number) => OptionValue::Number(number.to_string()),
                serde_json::Value::String(text) => OptionValue::Text(text.clone()),
                serde_json::Value::Bool(value) => OptionValue::Bool(*value),
                other => {
                    return Err(fault(format!(
                        "stored option {name} must be a number, a text or a boolean, found {other}"
                    )));
                }
            };
            Ok(OptionItem::unplaced(name, value))
        })
        .collect()
}

/// Make a struct of options, every field `None` until it is given, with reading, writing and its documentation.
macro_rules! option_table {
    (
        $(#[$meta:meta])*
        pub struct $table:ident of $statement:literal {
            $( #[doc = $doc:literal] $field:ident: $kind:ty, $range:expr; )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $table {
            $( #[doc = $doc] pub $field: Option<$kind>, )+
        }

        impl $table {
            /// Every option: name, type, range and meaning.
            pub const SPECS: &'static [$crate::dialect::option::OptionSpec] = &[
                $( $crate::dialect::option::OptionSpec {
                    name: stringify!($field),
                    kind: <$kind as $crate::dialect::option::OptionType>::KIND,
                    range: $range,
                    doc: $doc,
                } ),+
            ];

            /// Check a list of options and give each its type.
            pub fn from_items(
                items: &[$crate::dialect::option::OptionItem],
            ) -> Result<Self, $crate::dialect::option::OptionError> {
                $crate::dialect::option::refuse_duplicates(items)?;
                let mut table = Self::default();
                for item in items {
                    match item.name.as_str() {
                        $( stringify!($field) => table.$field = Some($crate::dialect::option::read(item, $range)?), )+
                        _ => return Err($crate::dialect::option::unknown(item, $statement, Self::SPECS)),
                    }
                }
                Ok(table)
            }

            /// Read the options that [`Self::to_json`] wrote.
            pub fn from_json(value: &serde_json::Value) -> Result<Self, $crate::dialect::option::OptionError> {
                Self::from_items(&$crate::dialect::option::items_from_json(value)?)
            }

            /// The options that are given, as a JSON object; durations are seconds.
            pub fn to_json(&self) -> serde_json::Value {
                use $crate::dialect::option::OptionType;
                let mut object = serde_json::Map::new();
                $( if let Some(value) = &self.$field {
                    object.insert(stringify!($field).to_owned(), value.json());
                } )+
                serde_json::Value::Object(object)
            }

            /// Whether no option is given.
            pub fn is_empty(&self) -> bool {
                true $( && self.$field.is_none() )+
            }
        }

        /// The options that are given: `name => value, …`.
        impl std::fmt::Display for $table {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                use $crate::dialect::option::OptionType;
                let mut separator = "";
                $( if let Some(value) = &self.$field {
                    write!(f, "{separator}{} => {}", stringify!($field), value.write())?;
                    separator = ", ";
                } )+
                let _ = separator;
                Ok(())
            }
        }
    };
}
pub(super) use option_table;
