//! Python literals: written as a person would lay them out, and read back, comments and trailing commas included.

use std::fmt::Write as _;

/// A Python literal whose dictionaries keep their order. Scalars are kept in JSON spelling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    /// Number, `true`, `false` or `null`, in JSON spelling.
    Scalar(String),
    /// Text.
    Text(String),
    /// List or tuple.
    List(Vec<Literal>),
    /// Dictionary with text keys.
    Dict(Vec<(String, Literal)>),
}

const WIDTH: usize = 110;
const INDENT: usize = 4;

impl Literal {
    /// Reads the literal at the start of `text` (JSON is a subset); `None` when there is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Reader {
            bytes: text.as_bytes(),
            text,
            at: 0,
            depth: 0,
        }
        .value()
    }

    /// The literal as Python, `column` characters after the start of its line, lines below indented by `indent`.
    pub(crate) fn python(&self, indent: usize, column: usize) -> String {
        let flat = self.flat();
        let nested = matches!(self, Self::Dict(items) if items.iter().any(|(_, value)| matches!(value, Self::Dict(_))));
        if column + flat.len() < WIDTH && !(nested && indent < 2 * INDENT) {
            return flat;
        }
        let (inner, outer) = (" ".repeat(indent + INDENT), " ".repeat(indent));
        match self {
            Self::Dict(items) => {
                let mut text = String::from("{\n");
                for (key, value) in items {
                    let key = quote(key);
                    let value = value.python(indent + INDENT, indent + INDENT + key.len() + 3);
                    let _ = writeln!(text, "{inner}{key}: {value},");
                }
                text + &outer + "}"
            }
            Self::List(items) => {
                let mut text = String::from("[\n");
                let mut line = inner.clone();
                for item in items {
                    let item = item.python(indent + INDENT, indent + INDENT);
                    if line.len() > inner.len() && line.len() + item.len() + 2 > WIDTH {
                        let _ = writeln!(text, "{}", line.trim_end());
                        line.clone_from(&inner);
                    }
                    let _ = write!(line, "{item}, ");
                }
                let _ = writeln!(text, "{}", line.trim_end());
                text + &outer + "]"
            }
            Self::Scalar(_) | Self::Text(_) => flat,
        }
    }

    /// The literal as JSON.
    pub(crate) fn json(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.clone(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::json).collect();
                format!("[{}]", items.join(","))
            }
            Self::Dict(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|(key, value)| format!("{}:{}", serde_json::Value::from(key.as_str()), value.json()))
                    .collect();
                format!("{{{}}}", items.join(","))
            }
        }
    }

    fn flat(&self) -> String {
        match self {
            Self::Scalar(scalar) => match scalar.as_str() {
                "true" => "True".to_owned(),
                "false" => "False".to_owned(),
                "null" => "None".to_owned(),
                number => number.to_owned(),
            },
            Self::Text(text) => quote(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::flat).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Dict(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|(key, value)| format!("{}: {}", quote(key), value.flat()))
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
        }
    }
}

/// Text as a Python string literal.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Texts as a Python list that starts `column` characters after the start of an unindented line.
pub(crate) fn list<S: AsRef<str>>(items: &[S], column: usize) -> String {
    Literal::List(
        items
            .iter()
            .map(|item| Literal::Text(item.as_ref().to_owned()))
            .collect(),
    )
    .python(0, column)
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    const DEPTH: usize = 64;

    fn value(&mut self) -> Option<Literal> {
        self.space();
        match self.bytes.get(self.at)? {
            b'{' => self.nested(Self::dict),
            b'[' => self.nested(|reader| reader.list(b']')),
            b'(' => self.nested(|reader| reader.list(b')')),
            b'"' | b'\'' => self.string().map(Literal::Text),
            _ => self.scalar(),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Literal>) -> Option<Literal> {
        self.depth += 1;
        if self.depth > Self::DEPTH {
            return None;
        }
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn dict(&mut self) -> Option<Literal> {
        let mut items = Vec::new();
        while !self.closes(b'}')? {
            let key = self.string()?;
            self.space();
            if *self.bytes.get(self.at)? != b':' {
                return None;
            }
            self.at += 1;
            let value = self.value()?;
            items.push((key, value));
            self.comma(b'}')?;
        }
        Some(Literal::Dict(items))
    }

    fn list(&mut self, close: u8) -> Option<Literal> {
        let mut items = Vec::new();
        while !self.closes(close)? {
            items.push(self.value()?);
            self.comma(close)?;
        }
        Some(Literal::List(items))
    }

    fn closes(&mut self, close: u8) -> Option<bool> {
        self.space();
        let closes = *self.bytes.get(self.at)? == close;
        self.at += usize::from(closes);
        Some(closes)
    }

    fn comma(&mut self, close: u8) -> Option<()> {
        self.space();
        match *self.bytes.get(self.at)? {
            b',' => {
                self.at += 1;
                Some(())
            }
            next if next == close => Some(()),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<String> {
        self.space();
        let quote = *self.bytes.get(self.at)? as char;
        if quote != '"' && quote != '\'' {
            return None;
        }
        let mut out = String::new();
        let mut chars = self.text.get(self.at + 1..)?.char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += offset + 2;
                    return Some(out);
                }
                '\n' => return None,
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    'r' => out.push('\r'),
                    't' => out.push('\t'),
                    'u' => {
                        let code: String = (0..4).filter_map(|_| chars.next()).map(|(_, c)| c).collect();
                        out.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
                    }
                    other => out.push(other),
                },
                c => out.push(c),
            }
        }
        None
    }

    fn scalar(&mut self) -> Option<Literal> {
        let rest = self.text.get(self.at..)?;
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_')))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        let json = match word {
            "True" | "true" => "true".to_owned(),
            "False" | "false" => "false".to_owned(),
            "None" | "null" => "null".to_owned(),
            number => {
                let number = number.replace('_', "");
                match (number.parse::<i64>(), number.parse::<f64>()) {
                    (Ok(whole), _) => whole.to_string(),
                    (_, Ok(value)) if value.is_finite() => serde_json::Value::from(value).to_string(),
                    _ => return None,
                }
            }
        };
        Some(Literal::Scalar(json))
    }

    fn space(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte == b'#' {
                while self.bytes.get(self.at).is_some_and(|byte| *byte != b'\n') {
                    self.at += 1;
                }
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else {
                break;
            }
        }
    }
}
