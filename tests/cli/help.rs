//! The help of every command, and the page that shows it.

use std::path::Path;

use super::fixture::Place;

const COMMANDS: [&[&str]; 47] = [
    &[],
    &["init"],
    &["quickstart"],
    &["sql"],
    &["task"],
    &["task", "add"],
    &["task", "list"],
    &["task", "show"],
    &["model"],
    &["model", "list"],
    &["model", "show"],
    &["model", "test"],
    &["policy"],
    &["policy", "list"],
    &["policy", "show"],
    &["policy", "create"],
    &["policy", "drop"],
    &["policy", "trace"],
    &["prompt"],
    &["evolve"],
    &["bench"],
    &["bench", "run"],
    &["bench", "resume"],
    &["bench", "list"],
    &["bench", "show"],
    &["exec"],
    &["runs"],
    &["runs", "cancel"],
    &["runs", "resume"],
    &["watch"],
    &["plot"],
    &["report"],
    &["show"],
    &["diff"],
    &["export"],
    &["export", "board"],
    &["export", "cards"],
    &["grade"],
    &["serve"],
    &["worker"],
    &["router"],
    &["key"],
    &["key", "create"],
    &["key", "list"],
    &["key", "revoke"],
    &["doctor"],
    &["config"],
];

/// What is common to all commands is shown once, in the help of the program.
fn own_part(help: &str) -> &str {
    help.split_once("Common options:")
        .map_or(help, |(own, _)| own.trim_end())
}

#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    for command in COMMANDS {
        let help = place.run(command.iter().copied().chain(["--help"])).ok();
        let (name, shown) = if command.is_empty() {
            ("clade".to_owned(), help.as_str())
        } else {
            (command.join("_"), own_part(&help))
        };
        insta::assert_snapshot!(format!("help_{name}"), shown);
    }
}

/// Each command has a heading on the page, and its help stands in the block below. `UPDATE_DOCS=1` writes the blocks.
#[test]
fn the_page_shows_the_help_of_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    let place = Place::new();
    let mut stale = Vec::new();
    for command in COMMANDS {
        let help = place.run(command.iter().copied().chain(["-h"])).ok();
        let level = if command.len() > 1 { "###" } else { "##" };
        let blocks = if command.is_empty() {
            let (_, commands) = help.split_once("Commands:").unwrap();
            let (commands, _) = commands.split_once("\n\n").unwrap();
            let (_, common) = help.split_once("Common options:").unwrap();
            let (common, _) = common.split_once("\n\n").unwrap_or((common.trim_end(), ""));
            vec![
                ("# Command line".to_owned(), format!("Commands:{commands}")),
                (
                    "Options of every command:".to_owned(),
                    format!("Common options:{common}"),
                ),
            ]
        } else {
            vec![(
                format!("{level} clade {}", command.join(" ")),
                own_part(&help).to_owned(),
            )]
        };
        for (heading, block) in blocks {
            let Some((begin, end)) = block_below(&page, &heading) else {
                stale.push(format!("there is no '{heading}'"));
                continue;
            };
            if page[begin..end] != block {
                stale.push(heading);
                page.replace_range(begin..end, &block);
            }
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    } else {
        assert!(
            stale.is_empty(),
            "docs/cli.md is stale, UPDATE_DOCS=1 writes it: {stale:?}"
        );
    }
}

/// Where the first block of text below a line begins and ends.
fn block_below(page: &str, heading: &str) -> Option<(usize, usize)> {
    const OPEN: &str = "```text\n";
    let below = page.find(&format!("{heading}\n"))?;
    let begin = below + page[below..].find(OPEN)? + OPEN.len();
    let end = begin + page[begin..].find("\n```")?;
    Some((begin, end))
}
