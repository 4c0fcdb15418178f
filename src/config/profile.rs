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

    use super::super::{SearchMode, Sources, entries};
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
            let written = text
                .lines()
                .filter(|line| line.contains(" = ") && !line.starts_with('#'));
            assert_eq!(from_profile, written.count(), "{name}: {entries:?}");
        }
    }

    #[test]
    fn the_shipped_profiles_are_the_published_settings() {
        let hours = |hours: u64| Some(hours * 3600);
        for (name, steps, mode, workers, [sandbox, active, wall], seconds, depth, fresh) in [
            (
                "standard",
                800,
                SearchMode::Generation,
                1,
                [hours(12), hours(18), None],
                7200,
                10,
                None,
            ),
            (
                "multi_worker",
                800,
                SearchMode::Async,
                4,
                [hours(12), hours(18), None],
                7200,
                10,
                None,
            ),
            (
                "naturebench",
                160,
                SearchMode::Generation,
                2,
                [hours(4), None, hours(6)],
                14_400,
                2,
                Some(0.2),
            ),
            ("smoke", 6, SearchMode::Async, 2, [None, None, Some(900)], 120, 1, None),
        ] {
            let sources = Sources {
                overrides: flag(name),
                ..Sources::default()
            };
            let config = sources.load().unwrap().config;
            let search = &config.search;
            assert_eq!(
                (search.steps, search.mode, search.workers),
                (steps, mode, workers),
                "{name}"
            );
            assert_eq!(
                [
                    search.max_sandbox_seconds,
                    search.max_model_sandbox_seconds,
                    search.max_wall_seconds
                ],
                [sandbox, active, wall],
                "{name}"
            );
            assert_eq!(config.sandbox.wall_seconds, seconds, "{name}");
            assert_eq!(search.settings.debug_depth, Some(depth), "{name}");
            assert_eq!(search.settings.fresh_draft_probability, fresh, "{name}");
        }
    }

    /// A folder with a configuration and a profile of its own.
    fn with_profile(config: &str, profile: &str) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
        std::fs::write(folder.path().join("profiles/mine.toml"), profile).unwrap();
        std::fs::write(folder.path().join("clade.toml"), config).unwrap();
        let sources = Sources {
            folder: Some(folder.path().to_owned()),
            ..Sources::default()
        };
        (folder, sources)
    }

    fn flag(name: &str) -> Vec<Override> {
        vec![Override::parse(&format!("{PROFILE_KEY}={name}"), "--profile").unwrap()]
    }

    #[test]
    fn a_profile_lies_below_the_rest_of_its_layer_and_above_the_layers_before() {
        let profile = "[search]\nsteps = 7\nworkers = 3\n[sandbox]\nwall_seconds = 11\n";
        let (_folder, mut sources) = with_profile("[search]\nprofile = 'mine'\nsteps = 5\nseed = 1\n", profile);
        let shown = |sources: &Sources| {
            let config = sources.load().unwrap().config;
            (
                config.search.steps,
                config.search.workers,
                config.search.seed,
                config.sandbox.wall_seconds,
            )
        };
        assert_eq!(shown(&sources), (5, 3, 1, 11));
        sources.environment = vec![("CLADE_SEARCH_WORKERS".to_owned(), "2".to_owned())];
        assert_eq!(shown(&sources), (5, 2, 1, 11));
        // Named on the command line, it wins over the file and the environment, and the file's own profile does not hold.
        sources.overrides = flag("mine");
        assert_eq!(shown(&sources), (7, 3, 1, 11));
        sources.overrides = flag("smoke");
        assert_eq!(shown(&sources), (6, 2, 1, 120));
        sources
            .overrides
            .push(Override::parse("search.steps=9", "--set").unwrap());
        assert_eq!(shown(&sources), (9, 2, 1, 120));
        sources.overrides = flag("");
        assert_eq!(shown(&sources), (5, 2, 1, 3600));
    }

    #[test]
    fn mistakes_of_a_profile_name_its_file_and_line() {
        for (profile, expected) in [
            (
                "# One.\n[search]\nstepz = 1\n",
                "unknown key 'search.stepz' in FOLDER/profiles/mine.toml:3; did you mean 'search.steps'?",
            ),
            (
                "[sandbox]\nwall_seconds = 0\n",
                "'sandbox.wall_seconds' in FOLDER/profiles/mine.toml:2: must be at least 1",
            ),
            (
                "[search]\nsteps = 2\n[store]\npath = 'x'\n",
                "'store' in FOLDER/profiles/mine.toml:3: a profile sets keys of [search] and [sandbox], and names no other profile",
            ),
            (
                "[search]\nprofile = 'smoke'\n",
                "'search.profile' in FOLDER/profiles/mine.toml:2: a profile sets keys of [search] and [sandbox], and names no other \
                 profile",
            ),
            (
                "[sarch]\nsteps = 2\n",
                "unknown key 'sarch' in FOLDER/profiles/mine.toml:1; did you mean 'search'?",
            ),
        ] {
            let (folder, mut sources) = with_profile("", profile);
            sources.overrides = flag("mine");
            let error = sources.load().unwrap_err().to_string();
            assert_eq!(error.replace(&*folder.path().to_string_lossy(), "FOLDER"), expected);
        }
        let (folder, mut sources) = with_profile("", "");
        sources.overrides = flag("nope");
        let error = sources.load().unwrap_err().to_string();
        assert_eq!(
            error.replace(&*folder.path().to_string_lossy(), "FOLDER"),
            "there is no profile 'nope', which command line (--profile) names: the profiles are mine, multi_worker, naturebench, \
             smoke, standard; own ones are files NAME.toml in FOLDER/profiles"
        );
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
        assert_eq!(name(file, &environment, &flags), Some(("b".into(), Layer::CommandLine)));
        assert_eq!(name(file, &environment, &[]), Some(("c".into(), Layer::Environment)));
        assert_eq!(name(file, &[], &[]), Some(("d".into(), Layer::File)));
        assert_eq!(name(None, &[], &[]), None);
        let none = [Override::parse("search.profile=", "--profile").unwrap()];
        assert_eq!(name(file, &environment, &none), None);
    }
}
