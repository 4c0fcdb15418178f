//! A reader of HTML that is strict: it knows what a page of ours may hold, and refuses the rest.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Elements without an end.
const VOID: [&str; 2] = ["meta", "input"];

/// Elements that a page may have.
const KNOWN: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "a",
    "header",
    "div",
    "p",
    "svg",
    "path",
    "circle",
    "span",
    "main",
    "noscript",
    "section",
    "h1",
    "h2",
    "h3",
    "h4",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "figure",
    "figcaption",
    "g",
    "line",
    "rect",
    "text",
    "details",
    "summary",
    "pre",
    "dl",
    "dt",
    "dd",
    "label",
    "input",
    "script",
    "footer",
    "aside",
    "button",
    "template",
    "strong",
];

/// Attributes that a page may have.
const ATTRIBUTES: &[&str] = &[
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "href",
    "id",
    "aria-labelledby",
    "aria-label",
    "aria-hidden",
    "aria-controls",
    "aria-selected",
    "role",
    "tabindex",
    "scope",
    "width",
    "height",
    "viewbox",
    "focusable",
    "d",
    "cx",
    "cy",
    "r",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "dy",
    "rx",
    "text-anchor",
    "preserveaspectratio",
    "data-n",
    "data-run",
    "open",
    "type",
    "hidden",
    "checked",
    "title",
];

/// An element of a page.
#[derive(Debug, Clone)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    /// Text inside, that of the elements within included.
    pub text: String,
    /// Places of the elements that it is in.
    pub within: Vec<usize>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.attribute("class").split(' ').any(|own| own == class)
    }
}

/// A page that was read.
#[derive(Debug)]
pub struct Page {
    pub elements: Vec<Element>,
}

impl Page {
    /// Reads a page and checks that it is well formed, and that nothing in it can reach out or run.
    #[track_caller]
    pub fn read(html: &str) -> Self {
        let page = parse(html);
        page.check();
        page
    }

    /// Elements of a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }

    /// The element with an id.
    #[track_caller]
    pub fn by_id(&self, id: &str) -> &Element {
        let found = self.elements.iter().find(|element| element.attribute("id") == id);
        found.unwrap_or_else(|| panic!("no element has the id {id}"))
    }

    /// Elements inside the one with an id.
    pub fn inside<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Element> {
        let place = self.elements.iter().position(|element| element.attribute("id") == id);
        self.elements
            .iter()
            .filter(move |element| place.is_some_and(|place| element.within.contains(&place)))
    }

    /// Texts of the cells of a row.
    pub fn cells(&self, row: &Element) -> Vec<String> {
        let place = self.elements.iter().position(|element| std::ptr::eq(element, row));
        self.elements
            .iter()
            .filter(|element| ["th", "td"].contains(&element.name.as_str()))
            .filter(|element| element.within.last() == place.as_ref())
            .map(|element| element.text.trim().to_owned())
            .collect()
    }

    /// Rows of the tables inside the element with an id, but for their heads, as texts of their cells.
    pub fn rows_of(&self, id: &str) -> Vec<Vec<String>> {
        let rows = self.inside(id).filter(|element| element.name == "tr");
        let rows = rows.filter(|row| row.within.last().is_some_and(|at| self.elements[*at].name == "tbody"));
        rows.map(|row| self.cells(row)).collect()
    }

    /// What the script of a run reads.
    pub fn payload(&self, run: usize) -> serde_json::Value {
        let packed = STANDARD
            .decode(self.by_id(&format!("texts-{run}")).text.trim())
            .unwrap();
        serde_json::from_reader(flate2::read::ZlibDecoder::new(packed.as_slice())).unwrap()
    }

    #[track_caller]
    fn check(&self) {
        let ids: Vec<&str> = self
            .elements
            .iter()
            .map(|element| element.attribute("id"))
            .filter(|id| !id.is_empty())
            .collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "an id is there twice");
        for element in &self.elements {
            assert!(
                KNOWN.contains(&element.name.as_str()),
                "a page has no use for <{}>",
                element.name
            );
            for (name, value) in &element.attributes {
                assert!(
                    ATTRIBUTES.contains(&name.as_str()),
                    "a page has no use for {name}={value}"
                );
            }
            let href = element.attribute("href");
            if element.attributes.contains_key("href") {
                assert!(
                    href.starts_with('#') && unique.contains(&href[1..]),
                    "{href} leads out of the page, or nowhere"
                );
            }
            for id in [element.attribute("aria-labelledby"), element.attribute("aria-controls")] {
                assert!(id.is_empty() || unique.contains(id), "no element has the id {id}");
            }
        }
        let policies: Vec<&Element> = self
            .named("meta")
            .filter(|meta| meta.attribute("http-equiv") == "Content-Security-Policy")
            .collect();
        let [policy] = policies.as_slice() else {
            panic!("a page has one policy, not {}", policies.len())
        };
        let policy = policy.attribute("content");
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe") && !policy.contains('*'),
            "{policy}"
        );
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        for style in self.named("style") {
            assert!(
                policy.contains(&format!("style-src {}", hash(&style.text))),
                "the style is not allowed: {policy}"
            );
        }
        let programs: Vec<&Element> = self
            .named("script")
            .filter(|script| script.attribute("type").is_empty())
            .collect();
        assert_eq!(programs.len(), 1, "a page has one script");
        assert!(
            policy.contains(&format!("script-src {}", hash(&programs[0].text))),
            "the script is not allowed: {policy}"
        );
        for text in self.named("style").map(|style| &style.text).chain([&programs[0].text]) {
            for reach in ["url(", "@import", "http:", "https:", "src="] {
                assert!(!text.contains(reach), "{reach} in a style or script");
            }
        }
        for data in self
            .named("script")
            .filter(|script| !script.attribute("type").is_empty())
        {
            let plain = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
            assert!(data.text.trim().chars().all(plain), "texts are base64 and nothing else");
        }
    }
}

fn parse(html: &str) -> Page {
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut rest = html.strip_prefix("<!doctype html>").expect("a page says what it is");
    while !rest.is_empty() {
        let (text, tag) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        let text = decode(text);
        for place in &open {
            elements[*place].text.push_str(&text);
        }
        if tag.is_empty() {
            break;
        }
        if let Some(end) = tag.strip_prefix("</") {
            let (name, after) = end.split_once('>').unwrap();
            let place = open.pop().expect("an end without its beginning");
            assert_eq!(elements[place].name, name, "elements overlap");
            rest = after;
            continue;
        }
        let (element, empty, mut after) = begin(tag, &open);
        let (name, place) = (element.name.clone(), elements.len());
        elements.push(element);
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            let (text, end) = after.split_once(&close).unwrap();
            elements[place].text = text.to_owned();
            after = end;
        } else if !empty && !VOID.contains(&name.as_str()) {
            open.push(place);
        }
        rest = after;
    }
    assert!(open.is_empty(), "{} elements have no end", open.len());
    Page { elements }
}

/// The element that a text begins with, whether it is empty, and what comes after its tag.
fn begin<'a>(tag: &'a str, open: &[usize]) -> (Element, bool, &'a str) {
    let mut rest = &tag[1..];
    let word = |text: &str| {
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .unwrap_or(text.len())
    };
    let (name, after) = rest.split_at(word(rest));
    assert!(
        !name.is_empty(),
        "a < that begins no element: {}",
        &tag[..tag.len().min(60)]
    );
    rest = after;
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("/>") {
            return (element(name, attributes, open), true, after);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (element(name, attributes, open), false, after);
        }
        let (attribute, after) = rest.split_at(word(rest));
        assert!(!attribute.is_empty(), "no attribute: {}", &rest[..rest.len().min(60)]);
        let mut value = String::new();
        rest = after;
        if let Some(after) = rest.strip_prefix("=\"") {
            let (text, after) = after.split_once('"').unwrap();
            assert!(!text.contains('<'), "an attribute with a tag in it: {text}");
            value = decode(text);
            rest = after;
        }
        attributes.insert(attribute.to_ascii_lowercase(), value);
    }
}

fn element(name: &str, attributes: BTreeMap<String, String>, open: &[usize]) -> Element {
    Element {
        name: name.to_ascii_lowercase(),
        attributes,
        text: String::new(),
        within: open.to_vec(),
    }
}

fn decode(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x2f;", "/"),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
