//! Tokens of one statement to its syntax tree.

use datafusion::sql::parser::{DFParserBuilder, Statement as DataFusionStatement};
use datafusion::sql::sqlparser::ast::{Query, Statement as SqlStatement};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::operators::Operator;

use super::ast::{
    CreateModel, CreatePolicy, DropModel, DropPolicy, Evolve, Expand, ExpandClause, ExplainExpand, Statement,
};
use super::cursor::Cursor;
use super::error::Fault;
use super::evolve_options::EvolveOptions;
use super::expand_options::ExpandOptions;
use super::foreign;
use super::option::refuse_duplicates;
use super::source::Source;
use super::split::{self, ExpandCut};

/// Parse one statement.
pub(super) fn statement(tokens: &[TokenWithSpan], source: &Source<'_>) -> Result<Statement, Fault> {
    if let Some(cut) = split::at_expand(tokens)? {
        return expand(&cut);
    }
    foreign::refuse(tokens)?;
    let mut cursor = Cursor::new(tokens);
    let cursor = &mut cursor;
    let parsed = if cursor.take_words(&["evolve"]) {
        evolve(cursor)?
    } else if cursor.take_words(&["create", "policy"]) {
        return create_policy(cursor, false, source);
    } else if cursor.take_words(&["create", "or", "replace", "policy"]) {
        return create_policy(cursor, true, source);
    } else if cursor.take_words(&["drop", "policy"]) {
        drop_policy(cursor)?
    } else if cursor.take_words(&["drop", "model"]) {
        let if_exists = cursor.take_words(&["if", "exists"]);
        Statement::DropModel(DropModel {
            if_exists,
            name: cursor.name("the model's name")?,
        })
    } else if cursor.take_words(&["show", "models"]) {
        Statement::ShowModels
    } else if cursor.take_words(&["show", "policies"]) {
        Statement::ShowPolicies
    } else if cursor.take_words(&["show", "create", "policy"]) {
        Statement::ShowCreatePolicy {
            name: cursor.name("the policy's name")?,
        }
    } else if cursor.take_words(&["show", "runs"]) {
        Statement::ShowRuns
    } else if cursor.take_words(&["cancel"]) {
        cursor.expect_word("RUN")?;
        Statement::CancelRun {
            run_id: cursor.text("the run's id as a quoted text")?,
        }
    } else if cursor.take_words(&["resume"]) {
        cursor.expect_word("RUN")?;
        Statement::ResumeRun {
            run_id: cursor.text("the run's id as a quoted text")?,
        }
    } else if cursor.take_words(&["checkpoint"]) {
        Statement::Checkpoint
    } else if cursor.take_words(&["optimize"]) {
        optimize(cursor)?
    } else if cursor.take_words(&["create", "task"]) {
        cursor.expect_word("FROM")?;
        create_task(cursor)?
    } else if cursor.take_words(&["create", "model"]) {
        create_model(cursor, false)?
    } else if cursor.take_words(&["create", "or", "replace", "model"]) {
        create_model(cursor, true)?
    } else {
        return Ok(Statement::DataFusion(Box::new(data_fusion(tokens)?)));
    };
    cursor.expect_end()?;
    Ok(parsed)
}

/// Hand tokens to DataFusion's parser; it must use all of them.
fn data_fusion(tokens: &[TokenWithSpan]) -> Result<DataFusionStatement, Fault> {
    let mut parser = DFParserBuilder::new(tokens.to_vec()).build()?;
    let located = |fault: Fault| match (fault.at, tokens.last()) {
        // The parser gives the end of the input no place; it is the end of this statement, not of the text.
        (None, Some(last)) => Fault::new(fault.message, last.span.end),
        _ => fault,
    };
    let statement = parser
        .parse_statement()
        .map_err(|error| foreign::explain(located(error.into()), tokens))?;
    let rest = parser.parser.peek_token();
    if rest.token == Token::EOF {
        Ok(statement)
    } else {
        Err(Fault::new(
            format!("expected the end of the statement, found {rest}"),
            rest.span.start,
        ))
    }
}

/// `[EXPLAIN [VERBOSE]] query EXPAND WITH …`
fn expand(cut: &ExpandCut<'_>) -> Result<Statement, Fault> {
    let at = cut.start;
    if cut.head.is_empty() {
        return Err(Fault::new(
            "EXPAND WITH needs a query before it that chooses the rows to expand",
            at,
        ));
    }
    if Cursor::new(cut.head).take_words(&["create", "policy"])
        || Cursor::new(cut.head).take_words(&["create", "or", "replace", "policy"])
    {
        return Err(Fault::new("a policy only chooses rows and cannot hold EXPAND", at));
    }
    let (query, explain) = match data_fusion(cut.head)? {
        DataFusionStatement::Explain(explain) => {
            if explain.options.analyze {
                let message =
                    "EXPLAIN ANALYZE would run the EXPAND and is refused; EXPLAIN shows the plan and runs nothing";
                return Err(Fault::new(
                    message,
                    cut.head.first().map_or(at, |token| token.span.start),
                ));
            }
            if explain.options.format.is_some() {
                let message = "EXPLAIN of an EXPAND takes VERBOSE but no FORMAT";
                return Err(Fault::new(
                    message,
                    cut.head.first().map_or(at, |token| token.span.start),
                ));
            }
            (query(*explain.statement, cut)?, Some(explain.options.verbose))
        }
        statement => (query(statement, cut)?, None),
    };
    let mut cursor = Cursor::new(cut.tail);
    if cut.tail.is_empty() {
        return Err(Fault::new(
            "expected an operator after EXPAND WITH: draft, improve, debug or crossover",
            cut.end,
        ));
    }
    let clause = expand_clause(&mut cursor)?;
    cursor.expect_end()?;
    let expand = Expand { query, clause };
    Ok(match explain {
        Some(verbose) => Statement::ExplainExpand(Box::new(ExplainExpand { verbose, expand })),
        None => Statement::Expand(Box::new(expand)),
    })
}

/// The query of an EXPAND; what writes or defines is refused.
fn query(statement: DataFusionStatement, cut: &ExpandCut<'_>) -> Result<Box<Query>, Fault> {
    match statement {
        DataFusionStatement::Statement(statement) => match *statement {
            SqlStatement::Query(query) => return Ok(query),
            SqlStatement::Insert(_) => Err("INSERT"),
            SqlStatement::CreateView { .. } => Err("CREATE VIEW"),
            SqlStatement::CreateTable(_) => Err("CREATE TABLE"),
            SqlStatement::Prepare { .. } => Err("PREPARE"),
            _ => Err("this statement"),
        },
        DataFusionStatement::CopyTo(_) => Err("COPY"),
        _ => Err("this statement"),
    }
    .map_err(|kind: &str| {
        Fault::new(
            format!("EXPAND cannot be part of {kind}: it follows a query and ends the statement"),
            cut.start,
        )
    })
}

/// `operator [(options)] [USING MODEL name] [IN SANDBOX name] [ASYNC]`
fn expand_clause(cursor: &mut Cursor<'_>) -> Result<ExpandClause, Fault> {
    let at = cursor.location();
    let operator: Operator = cursor
        .name("an operator: draft, improve, debug or crossover")?
        .parse()
        .map_err(|error: crate::operators::UnknownOperator| Fault::new(error.to_string(), at))?;
    let options = if cursor.rest().first().is_some_and(|token| token.token == Token::LParen) {
        ExpandOptions::from_items(&cursor.options()?)?
    } else {
        ExpandOptions::default()
    };
    let mut clause = ExpandClause {
        operator,
        options,
        model: None,
        sandbox: None,
        is_async: false,
    };
    while !cursor.rest().is_empty() {
        let taken = take_target(cursor, &mut clause.model, &mut clause.sandbox, &mut clause.is_async)?;
        if !taken {
            return Err(cursor.expected("USING MODEL, IN SANDBOX, ASYNC or the end of the statement"));
        }
    }
    Ok(clause)
}

/// Take `USING MODEL name`, `IN SANDBOX name` or `ASYNC`, each once.
fn take_target(
    cursor: &mut Cursor<'_>,
    model: &mut Option<String>,
    sandbox: &mut Option<String>,
    is_async: &mut bool,
) -> Result<bool, Fault> {
    let at = cursor.location();
    let twice = |what: &str| Fault::new(format!("{what} is given twice"), at);
    if cursor.take_words(&["using"]) {
        cursor.expect_word("MODEL")?;
        let name = cursor.name("the model's name")?;
        if model.replace(name).is_some() {
            return Err(twice("USING MODEL"));
        }
    } else if cursor.take_words(&["in"]) {
        cursor.expect_word("SANDBOX")?;
        let name = cursor.name("the sandbox's name")?;
        if sandbox.replace(name).is_some() {
            return Err(twice("IN SANDBOX"));
        }
    } else if cursor.take_words(&["async"]) {
        if std::mem::replace(is_async, true) {
            return Err(twice("ASYNC"));
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `TASK 'id' [WITH POLICY name] [USING MODEL name] [IN SANDBOX name] [WITH (options)] [ASYNC]`
fn evolve(cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
    cursor.expect_word("TASK")?;
    let task_id = cursor.text("the task's id as a quoted text")?;
    let (mut policy, mut options) = (None, None);
    let (mut model, mut sandbox, mut is_async) = (None, None, false);
    while !cursor.rest().is_empty() {
        let at = cursor.location();
        if cursor.take_words(&["with", "policy"]) {
            if policy.replace(cursor.name("the policy's name")?).is_some() {
                return Err(Fault::new("WITH POLICY is given twice", at));
            }
        } else if cursor.take_words(&["with"]) {
            if cursor.rest().first().is_none_or(|token| token.token != Token::LParen) {
                return Err(cursor.expected("POLICY or '(' after WITH"));
            }
            if options
                .replace(EvolveOptions::from_items(&cursor.options()?)?)
                .is_some()
            {
                return Err(Fault::new("WITH (…) is given twice; put all options into one list", at));
            }
        } else if !take_target(cursor, &mut model, &mut sandbox, &mut is_async)? {
            return Err(
                cursor.expected("WITH POLICY, USING MODEL, IN SANDBOX, WITH (…), ASYNC or the end of the statement")
            );
        }
    }
    let options = options.unwrap_or_default();
    Ok(Statement::Evolve(Box::new(Evolve {
        task_id,
        policy,
        model,
        sandbox,
        options,
        is_async,
    })))
}

/// `name [COMMENT 'text'] AS query`
fn create_policy(cursor: &mut Cursor<'_>, or_replace: bool, source: &Source<'_>) -> Result<Statement, Fault> {
    let name = cursor.name("the policy's name")?;
    let comment = if cursor.take_words(&["comment"]) {
        Some(cursor.text("the comment as a quoted text")?)
    } else {
        None
    };
    cursor.expect_word("AS")?;
    let body = cursor.rest();
    let (Some(first), Some(last)) = (body.first(), body.last()) else {
        return Err(cursor.expected("the policy's query"));
    };
    let DataFusionStatement::Statement(statement) = data_fusion(body)? else {
        return Err(Fault::new(
            "a policy is a query: SELECT, WITH or VALUES",
            first.span.start,
        ));
    };
    let SqlStatement::Query(query) = *statement else {
        return Err(Fault::new(
            "a policy is a query: SELECT, WITH or VALUES",
            first.span.start,
        ));
    };
    let sql = source.slice(first.span.start, last.span.end).to_owned();
    Ok(Statement::CreatePolicy(Box::new(CreatePolicy {
        or_replace,
        name,
        comment,
        query,
        sql,
    })))
}

/// `[IF EXISTS] name`
fn drop_policy(cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
    let if_exists = cursor.take_words(&["if", "exists"]);
    Ok(Statement::DropPolicy(DropPolicy {
        if_exists,
        name: cursor.name("the policy's name")?,
    }))
}

/// `[table]`
fn optimize(cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
    let table = if cursor.rest().is_empty() {
        None
    } else {
        Some(cursor.dotted_name("a table's name")?)
    };
    Ok(Statement::Optimize { table })
}

/// `'path'`
fn create_task(cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
    let at = cursor.location();
    let path = cursor.text("the package's path as a quoted text")?;
    if path.trim().is_empty() {
        return Err(Fault::new(
            "CREATE TASK FROM needs the folder of a task package, found ''",
            at,
        ));
    }
    Ok(Statement::CreateTask { path })
}

/// `name OPTIONS (…)`
fn create_model(cursor: &mut Cursor<'_>, or_replace: bool) -> Result<Statement, Fault> {
    let name = cursor.name("the model's name")?;
    cursor.expect_word("OPTIONS")?;
    let items = cursor.listed_options()?;
    refuse_duplicates(&items)?;
    let options = items.into_iter().map(|item| (item.name, item.value)).collect();
    Ok(Statement::CreateModel(CreateModel {
        or_replace,
        name,
        options,
    }))
}
