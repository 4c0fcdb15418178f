//! Profiles: named sets of search and sandbox keys. A profile counts as part of the layer that names it: keys that stand in the
//! same layer, or in a later one, win over it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ConfigError;
use super::load::Override;

/// The shipped profiles.
const SHIPPED: [(&str, &str); 4] = [
    ("multi_worker", include_str!("../../configs/profiles/multi_worker.toml")),
    ("naturebench", include_str!("../../configs/profiles/naturebench.toml")),
    ("smoke", include_str!("../../configs/profiles/smoke.toml")),
    ("standard", include_str!("../../configs/profiles/standard.toml")),
];

/// Key that names the profile.
pub(super) const PROFILE_KEY: &str = "search.profile";

/// Variable that names the profile.
const PROFILE_VARIABLE: &str = "CLADE_SEARCH_PROFILE";

/// Folder of own profiles, beside the configuration.
const FOLDER: &str = "profiles";

/// Sections that a profile may set keys of.
const SECTIONS: [&str; 2] = ["search", "sandbox"];

/// Layers that may name a profile, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// The configuration file.
    File,
    /// `CLADE_*` variables.
    Environment,
    /// Flags.
    CommandLine,
}

impl Layer {
    pub(super) const ALL: [Self; 3] = [Self::File, Self::Environment, Self::CommandLine];
}

/// The profile that a layer names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Its name.
    pub(super) name: String,
    /// The layer that names it.
    pub(super) layer: Layer,
    /// Who names it, in words.
    pub(super) by: String,
}

/// A profile's text.
#[derive(Debug)]
pub(super) struct Profile {
    /// What its values are said to come from.
    pub(super) origin: String,
    /// TOML.
    pub(super) text: String,
}

/// The one profile that holds: that of the last layer that names one. An empty name names none.
pub(super) fn chosen(
    file: Option<(&str, &str)>,
    environment: &[(String, String)],
    overrides: &[Override],
) -> Option<Chosen> {
    let flag = overrides.iter().rev().find(|item| item.key == PROFILE_KEY);
    let variable = environment.iter().find(|(name, _)| name == PROFILE_VARIABLE);
    let in_file = file.and_then(|(path, text)| Some((path, named_in(text)?)));
    let (name, layer, by) = match (flag, variable, in_file) {
        (Some(flag), _, _) => (
            flag.value.clone(),
            Layer::CommandLine,
            format!("command line ({})", flag.flag),
        ),
        (None, Some((variable, name)), _) => (
            name.clone(),
            Layer::Environment,
            format!("environment variable {variable}"),
        ),
        (None, None, Some((path, name))) => (name, Layer::File, path.to_owned()),
        (None, None, None) => return None,
    };
    (!name.is_empty()).then_some(Chosen { name, layer, by })
}

/// What a configuration file says of its profile; a text that does not parse is reported where it is read as a whole.
fn named_in(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Naming {
        search: Option<Search>,
    }
    #[derive(Deserialize)]
    struct Search {
        profile: Option<String>,
    }
    toml::from_str::<Naming>(text).ok()?.search?.profile
}

/// Reads a profile: a file of the folder beside the configuration, else a shipped one.
///
/// # Errors
/// When there is none of the name, or its file cannot be read.
pub(super) fn read(chosen: &Chosen, beside: Option<&Path>) -> Result<Profile, ConfigError> {
    let folder = beside.map(|folder| folder.join(FOLDER));
    if let Some(path) = own(&chosen.name, folder.as_deref()) {
        let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Unreadable {
            path: path.clone(),
            source,
        })?;
        return Ok(Profile {
            origin: path.display().to_string(),
            text,
        });
    }
    match SHIPPED.iter().find(|(name, _)| *name == chosen.name) {
        Some((name, text)) => Ok(Profile {
            origin: format!("profile {name}"),
            text: (*text).to_owned(),
        }),
        None => Err(ConfigError::UnknownProfile {
            name: chosen.name.clone(),
            origin: chosen.by.clone(),
            known: known(folder.as_deref()),
            folder: folder.map_or_else(|| FOLDER.to_owned(), |folder| folder.display().to_string()),
        }),
    }
}

/// The file of an own profile, when there is one.
fn own(name: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) && !name.starts_with('.');
    let path = folder?.join(format!("{name}.toml"));
    (is_plain && path.is_file()).then_some(path)
}

/// Names of the shipped and of the own profiles.
fn known(folder: Option<&Path>) -> Vec<String> {
    let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    names.extend(entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".toml").map(str::to_owned)
    }));
    names.sort();
    names.dedup();
    names
}

/// The first key of a profile that is none of its business, such as a path of the store. `known` are all keys of the
/// configuration; what is no key at all is reported with the other layers.
pub(super) fn misplaced(text: &str, known: &[String]) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let is_section = |name: &str| {
        name == "models"
            || known
                .iter()
                .any(|key| key.split_once('.').is_some_and(|(section, _)| section == name))
    };
    let other = table
        .keys()
        .find(|name| !SECTIONS.contains(&name.as_str()) && is_section(name))
        .cloned();
    let names_profile = table
        .get("search")
        .and_then(|search| search.get("profile"))
        .map(|_| PROFILE_KEY.to_owned());
    other.or(names_profile)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::super::{Sources, entries};
    use super::*;

    #[test]
    fn every_shipped_profile_is_valid_and_sets_every_key_it_holds() {
        let known = entries::keys(&super::super::Config::defaults().unwrap());
        for (name, text) in SHIPPED {
            assert_eq!(misplaced(text, &known), None, "{name}");
            let sources = Sources {
                overrides: vec![Override::parse(&format!("{PROFILE_KEY}={name}"), "--profile").unwrap()],
                ..Sources::default()
            };
            let entries = sources.load().unwrap().entries();
            let from_profile = entries
                .iter()
                .filter(|entry| entry.origin.as_deref() == Some(&format!("profile {name}")))
                .count();
            let written = text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#'));
            assert_eq!(from_profile, written.count(), "{name}: {entries:?}");
        }
    }

    #[test]
    fn the_last_layer_that_names_a_profile_chooses_it() {
        let flags = [
            Override::parse("search.profile=a", "--set").unwrap(),
            Override::parse("search.profile=b", "--profile").unwrap(),
        ];
        let environment = [(PROFILE_VARIABLE.to_owned(), "c".to_owned())];
        let file = Some(("clade.toml", "[search]\nprofile = 'd'\n"));
        let name = |file, environment: &[_], flags: &[_]| {
            chosen(file, environment, flags).map(|chosen| (chosen.name, chosen.layer))
        };
        assert_eq!(
            name(file, &environment, &flags),
            Some(("b".into(), Layer::CommandLine))
        );
        assert_eq!(name(file, &environment, &[]), Some(("c".into(), Layer::Environment)));
        assert_eq!(name(file, &[], &[]), Some(("d".into(), Layer::File)));
        assert_eq!(name(None, &[], &[]), None);
        let none = [Override::parse("search.profile=", "--profile").unwrap()];
        assert_eq!(name(file, &environment, &none), None);
    }
}
