//! Options of EVOLVE on the command line: each is checked under the name of its flag, by the rules of the statement.

use super::error::CliError;
use crate::dialect::{EvolveOptions, OptionItem, OptionValue};

/// Options by their flags, and those of `--option NAME=VALUE`.
///
/// # Errors
/// When a value is none for its option; the error repeats what was written.
pub fn option_items(flags: &[(&str, &Option<String>)], others: &[String]) -> Result<Vec<OptionItem>, CliError> {
    let mut items = Vec::new();
    for (flag, value) in flags {
        if let Some(text) = value {
            let item = OptionItem::unplaced(flag.replace('-', "_"), OptionValue::of(text));
            check(&format!("--{flag} {text}"), &item)?;
            items.push(item);
        }
    }
    for text in others {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| CliError::Usage(format!("--option {text}: write NAME=VALUE, such as quality_weight=2")))?;
        let item = OptionItem::unplaced(name.trim(), OptionValue::of(value.trim()));
        check(&format!("--option {text}"), &item)?;
        items.push(item);
    }
    Ok(items)
}

/// Checks one option; the error names what the user wrote.
///
/// # Errors
/// When there is no such option, or the value is none for it.
pub fn check(written: &str, item: &OptionItem) -> Result<(), CliError> {
    let Err(error) = EvolveOptions::from_items(std::slice::from_ref(item)) else {
        return Ok(());
    };
    let spec = EvolveOptions::SPECS.iter().find(|spec| spec.name == item.name);
    Err(CliError::Usage(match spec {
        Some(spec) => format!("{written}: must be {}{}", spec.kind, spec.range),
        None => format!("{written}: {}", error.message),
    }))
}

/// Refuses empty names of a policy, a model or a sandbox.
///
/// # Errors
/// When a name is given and empty.
pub fn check_names(names: &[(&str, &Option<String>)]) -> Result<(), CliError> {
    match names
        .iter()
        .find(|(_, name)| name.as_deref().is_some_and(str::is_empty))
    {
        Some((flag, _)) => Err(CliError::Usage(format!("--{flag} '': a name is wanted"))),
        None => Ok(()),
    }
}
