//! The help of every command.

use super::fixture::Place;

#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    let commands: [&[&str]; 27] = [
        &[],
        &["init"],
        &["quickstart"],
        &["sql"],
        &["task"],
        &["task", "add"],
        &["task", "list"],
        &["task", "show"],
        &["policy"],
        &["policy", "list"],
        &["policy", "show"],
        &["policy", "create"],
        &["policy", "drop"],
        &["policy", "trace"],
        &["evolve"],
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
        &["grade"],
        &["doctor"],
    ];
    for command in commands {
        let help = place.run(command.iter().copied().chain(["--help"])).ok();
        // What is common to all commands is shown once, in the help of the program.
        let own = match help.split_once("Common options:") {
            Some((own, _)) if !command.is_empty() => own.trim_end().to_owned(),
            _ => help,
        };
        let name = if command.is_empty() {
            "clade".to_owned()
        } else {
            command.join("_")
        };
        insta::assert_snapshot!(format!("help_{name}"), own);
    }
    insta::assert_snapshot!(
        "help_config",
        place
            .run(["config", "--help"])
            .ok()
            .split("Common options:")
            .next()
            .unwrap()
    );
}
