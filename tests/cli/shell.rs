//! The SQL shell on a real terminal.

use super::fixture::Place;
use super::terminal::Terminal;

const PROMPT: &str = "clade> ";

fn shell(place: &Place) -> Terminal {
    let mut command = place.command(["sql"]);
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), 100);
    terminal.expect(".help for help");
    terminal.expect(PROMPT);
    terminal
}

#[test]
fn statements_span_lines_and_end_with_a_semicolon() {
    let place = Place::with_store();
    let mut shell = shell(&place);
    shell.type_text("SELECT 41 + 1\r");
    shell.type_text("AS answer;\r");
    shell.expect("42");
    shell.expect("(1 row, ");
    shell.expect(PROMPT);
    for line in [".timing off", ".format json", "SELECT ';' AS s;"] {
        shell.type_text(&format!("{line}\r"));
        shell.expect(&line[line.len() - 2..]);
        if line.starts_with('.') {
            shell.expect(PROMPT);
        }
    }
    shell.expect("{\"s\":\";\"}");
    shell.expect(PROMPT);
    shell.type_text(".quit\r");
    assert!(shell.wait().success());
}

#[test]
fn mistakes_show_their_place_and_the_shell_goes_on() {
    let place = Place::with_store();
    let mut shell = shell(&place);
    shell.type_text("SELECT (1;\r");
    shell.expect("error:");
    shell.expect("^");
    shell.expect(PROMPT);
    shell.type_text(".nope\r");
    shell.expect("there is no command '.nope'");
    shell.type_text("SELECT 'still ' || 'here' AS x;\r");
    shell.expect("still here");
    // Ctrl-D on an empty line leaves.
    shell.expect(PROMPT);
    shell.type_text("\x04");
    assert!(shell.wait().success());
}

#[test]
fn control_c_clears_the_line_and_stops_a_query() {
    let place = Place::with_store();
    let mut shell = shell(&place);
    shell.type_text("SELECT nonsense\x03");
    shell.expect(PROMPT);
    shell.type_text("SELECT count(*) FROM generate_series(1, 100000000000) a;\r");
    shell.expect("a;");
    // The statement must have begun, or the key would clear a line.
    std::thread::sleep(std::time::Duration::from_secs(2));
    shell.type_text("\x03");
    shell.expect("interrupted");
    shell.expect(PROMPT);
    shell.type_text("SELECT 6 * 7 AS n;\r");
    shell.expect("42");
    shell.type_text(".quit\r");
    assert!(shell.wait().success());
}

#[test]
fn names_and_keywords_are_completed() {
    let place = Place::with_history();
    let mut shell = shell(&place);
    shell.type_text("sele\t");
    shell.expect("select");
    shell.type_text(" count(*) as c from evo.attem\t");
    shell.expect("evo.attempts");
    shell.type_text(";\r");
    shell.expect("(1 row, ");
    shell.expect(PROMPT);
    shell.type_text(".tab\t");
    shell.expect(".tables");
    shell.type_text(" nodes\r");
    shell.expect("evo.nodes");
    shell.type_text(".quit\r");
    assert!(shell.wait().success());
}

#[test]
fn the_commands_of_the_shell() {
    let place = Place::with_history();
    place.write("three.sql", "SELECT 1 + 2 AS three;");
    let mut shell = shell(&place);
    for (line, answer) in [
        (".help", ".schema NAME"),
        (".tables gym.tasks", "gym.tasks"),
        (".schema evo.nodes", "method_family"),
        (".functions softmax", "softmax"),
        (".policies", "openmle_evo"),
        (".runs", "01run"),
        (".format", "the format is table"),
        (".read three.sql", "3"),
    ] {
        shell.type_text(&format!("{line}\r"));
        shell.expect(&line[line.len() - 2..]);
        shell.expect(answer);
        shell.expect(PROMPT);
    }
    shell.type_text(".exit\r");
    assert!(shell.wait().success());
}

#[test]
fn the_history_is_kept() {
    let place = Place::with_store();
    let mut first = shell(&place);
    first.type_text("SELECT 'remember' AS me;\r");
    first.expect("(1 row, ");
    first.type_text(".quit\r");
    assert!(first.wait().success());
    let mut second = shell(&place);
    // Arrow up twice: past .quit.
    second.type_text("\x1b[A\x1b[A");
    second.expect("remember");
    second.type_text("\r");
    second.expect("(1 row, ");
    second.type_text(".quit\r");
    assert!(second.wait().success());
    assert!(place.path().join("data/clade/history").exists());
}
