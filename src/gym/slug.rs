//! Task names: what is a valid one, and how a competition's address becomes one.

/// A name that cannot be a task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a task name: use ASCII letters, digits, '.', '_' and '-', beginning and ending with a letter or digit"
)]
pub struct InvalidTaskName(pub String);

/// The trimmed name if it may name a task.
pub fn validate_task_name(name: &str) -> Result<&str, InvalidTaskName> {
    let trimmed = name.trim();
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = trimmed
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if inner && edge(trimmed.chars().next()) && edge(trimmed.chars().next_back()) {
        Ok(trimmed)
    } else {
        Err(InvalidTaskName(name.to_owned()))
    }
}

/// The slug of an address or path: what follows `competitions` or `c`, else the last part.
pub fn normalize_slug(value: &str) -> String {
    let value = value.trim();
    let path = value
        .split(['?', '#'])
        .next()
        .filter(|p| !p.is_empty())
        .unwrap_or(value);
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    for marker in ["competitions", "c"] {
        if let Some(at) = parts.iter().position(|p| *p == marker) {
            return (*parts.get(at + 1).unwrap_or(&marker)).to_owned();
        }
    }
    parts.last().copied().unwrap_or_default().to_owned()
}

/// The slugs of a list: comments and empty lines left out, the first of each kept.
pub fn normalize_slugs<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut slugs: Vec<String> = Vec::new();
    for value in values {
        let value = value.trim();
        if value.is_empty() || value.starts_with('#') {
            continue;
        }
        let slug = normalize_slug(value);
        if !slug.is_empty() && !slugs.contains(&slug) {
            slugs.push(slug);
        }
    }
    slugs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn names() {
        for good in ["titanic", "a-b_c.d", "1", " a "] {
            assert_eq!(validate_task_name(good).unwrap(), good.trim());
        }
        for bad in ["", ".", "..", "../x", "/abs", "a b", "a/b", "-a", "a.", "é"] {
            assert!(validate_task_name(bad).is_err(), "{bad}");
        }
        assert_eq!(normalize_slug("https://host/competitions/titanic/data?x=1"), "titanic");
        assert_eq!(normalize_slugs(["# comment", "", "c/x", "x"]), ["x"]);
    }

    #[test]
    fn reference_vectors() {
        let Some(file) = crate::gym::tests::golden_vectors("gym_slug.json") else {
            return;
        };
        for case in file["cases"].as_array().unwrap() {
            let name = &case["name"];
            if let Some(values) = case["input"]["values"].as_array() {
                let got = normalize_slugs(values.iter().map(|v| v.as_str().unwrap()));
                let want: Vec<&str> = case["expected"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_str().unwrap())
                    .collect();
                assert_eq!(got, want, "{name}");
                continue;
            }
            let value = case["input"]["value"].as_str().unwrap();
            assert_eq!(
                validate_task_name(value).ok(),
                case["expected"]["name"].as_str(),
                "name of {name}"
            );
            assert_eq!(
                normalize_slug(value),
                case["expected"]["slug"].as_str().unwrap(),
                "slug of {name}"
            );
        }
    }
}
