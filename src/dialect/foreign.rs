//! What other databases take and Clade does not: whole statements, and words that mean something else here.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::{Cursor, is_word};
use super::error::Fault;

const TRANSACTIONS: &str = "every statement is a transaction of its own, and rows are added but never changed, so there is nothing to roll back";
const FIXED: &str = "the tables of Clade are fixed; CREATE OR REPLACE makes a view or a table of your own anew";
const NO_USERS: &str = "there are no users: the permissions of the store's folder say who reads and writes it";

const BEGINNINGS: &str = "there are SELECT, WITH, VALUES, EXPLAIN, DESCRIBE, SHOW, SET, RESET, COPY, INSERT, CREATE, DROP, EVOLVE, \
                          CANCEL, RESUME, CHECKPOINT and OPTIMIZE";

/// First words of statements that Clade does not have, and what is said of them.
const FOREIGN: [(&[&str], &str); 20] = [
    (&["begin"], TRANSACTIONS),
    (&["start", "transaction"], TRANSACTIONS),
    (&["commit"], TRANSACTIONS),
    (&["end"], TRANSACTIONS),
    (&["rollback"], TRANSACTIONS),
    (&["savepoint"], TRANSACTIONS),
    (&["release"], TRANSACTIONS),
    (
        &["vacuum"],
        "Clade removes by itself what nobody reads any more; OPTIMIZE merges small files, CHECKPOINT moves all rows to Parquet",
    ),
    (
        &["analyze"],
        "Clade keeps the statistics of its files itself; EXPLAIN ANALYZE shows how a query runs",
    ),
    (&["alter"], FIXED),
    (
        &["create", "index"],
        "tables have no indexes; files and rows are skipped by their statistics",
    ),
    (&["create", "unique", "index"], "tables have no indexes"),
    (
        &["create", "schema"],
        "the schemas are fixed; make tables and views in evo, the schema of names without one",
    ),
    (
        &["create", "database"],
        "a store is one database; clade init makes another store",
    ),
    (
        &["use"],
        "write the schema before the table, as in gym.tasks; names without one are in evo",
    ),
    (&["grant"], NO_USERS),
    (&["revoke"], NO_USERS),
    (&["create", "user"], NO_USERS),
    (&["create", "role"], NO_USERS),
    (
        &["pragma"],
        "SHOW ALL lists the variables of the session, SET changes one, clade config shows the configuration",
    ),
];

/// Refuses a statement of another database and says what Clade has in its place.
pub(super) fn refuse(tokens: &[TokenWithSpan]) -> Result<(), Fault> {
    let found = FOREIGN.iter().find(|(words, _)| Cursor::new(tokens).take_words(words));
    match (found, tokens.first()) {
        (Some((words, instead)), Some(first)) => Err(Fault::new(
            format!("Clade has no {}: {instead}", words.join(" ").to_uppercase()),
            first.span.start,
        )),
        _ => Ok(()),
    }
}

/// Says in terms of Clade what its parser means.
pub(super) fn explain(fault: Fault, tokens: &[TokenWithSpan]) -> Fault {
    let message = fault.message.as_str();
    if message.starts_with("expected (, found ") {
        // Behind an expression the bare word opens the OPERATOR(…) of Postgres. A policy has a column of that name.
        let stands_before = |token: &&TokenWithSpan| fault.at.is_none_or(|at| token.span.start < at);
        return match tokens.iter().rev().find(stands_before) {
            Some(token) if is_word(&token.token, "operator") => Fault::new(
                "operator is a word of SQL here, not a name: write AS before it, as in 'draft' AS operator",
                token.span.start,
            ),
            _ => fault,
        };
    }
    match tokens.first().map(|first| &first.token) {
        Some(Token::Word(word)) if message.starts_with("expected an SQL statement, found ") => Fault {
            message: format!("no statement begins with {}: {BEGINNINGS}", word.value),
            ..fault
        },
        _ => fault,
    }
}
