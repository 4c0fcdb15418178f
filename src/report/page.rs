//! The page: templates, style, script, and the policy that lets it reach nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest, Sha256};

use super::compare;
use super::error::ReportError;
use super::facts::RunFacts;
use super::filters;
use super::suite::{SuiteFacts, SuiteView};
use super::view::RunView;

/// Templates; their ending turns escaping on.
const TEMPLATES: [(&str, &str); 9] = [
    ("page.html", include_str!("templates/page.html")),
    ("overview.html", include_str!("templates/overview.html")),
    ("suite.html", include_str!("templates/suite.html")),
    ("suite_tables.html", include_str!("templates/suite_tables.html")),
    ("run.html", include_str!("templates/run.html")),
    ("head.html", include_str!("templates/head.html")),
    ("charts.html", include_str!("templates/charts.html")),
    ("tables.html", include_str!("templates/tables.html")),
    ("detail.html", include_str!("templates/detail.html")),
];
const STYLE: &str = include_str!("templates/style.css");
const SCRIPT: &str = include_str!("templates/script.js");

/// Operators that have a colour of their own.
const OPERATORS: [&str; 4] = ["draft", "improve", "debug", "crossover"];

/// Runs that are shown opened; a page with more starts as an overview.
const MOST_OPEN: usize = 3;

/// Renders the page: runs with their numbers on it, before them the suite that they are of.
pub(super) fn render(runs: &[(usize, RunFacts)], suite: Option<&SuiteFacts>) -> Result<String, ReportError> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_trim_blocks(true);
    templates.set_lstrip_blocks(true);
    filters::register(&mut templates);
    // An operator this page does not know has the colour of none.
    templates.add_filter("operator_class", |operator: String| {
        if OPERATORS.contains(&operator.as_str()) {
            operator
        } else {
            "other".to_owned()
        }
    });
    for (name, source) in TEMPLATES {
        templates.add_template(name, source)?;
    }
    let views = runs.iter().map(|(number, run)| RunView::new(*number, run));
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let page = templates.get_template("page.html")?.render(context! {
        runs => views,
        suite => suite.map(SuiteView::new),
        is_one_of_many => suite.is_some() || runs.len() > 1,
        comparisons => compare::tasks(runs),
        policy => policy(),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        is_open => suite.is_none() && runs.len() <= MOST_OPEN,
        made_at => Utc::now().timestamp_micros(),
        version => env!("CARGO_PKG_VERSION"),
    })?;
    Ok(page)
}

/// The content security policy: nothing is loaded, nothing is sent, and only this style and this script count.
fn policy() -> Value {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    Value::from_safe_string(format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_embedded_reaches_for_nothing() {
        for text in [STYLE, SCRIPT].iter().chain(TEMPLATES.iter().map(|(_, text)| text)) {
            for reach in [
                "http:",
                "https:",
                "//cdn",
                "src=",
                "url(",
                "@import",
                "innerHTML",
                "eval(",
                "style=",
            ] {
                assert!(!text.contains(reach), "{reach}");
            }
        }
        // The closing tag would end the element early.
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</script"));
    }
}
