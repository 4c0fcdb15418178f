//! What our answer must be where it differs from the reference.

use serde_json::json;

use super::{Check, agrees, number};

/// Whether our answer is what the rule says.
pub type Expectation = fn(&Check) -> bool;

/// Expectation by the name that rules use.
pub fn expectation(name: &str) -> Option<Expectation> {
    Some(match name {
        "null" => |check| check.ours.is_null(),
        "zero" => |check| number(&check.ours) == Some(0.0),
        "true" => |check| check.ours == true,
        "known" => |check| !check.ours.is_null(),
        "the node ids"
        | "by the status alone"
        | "failures alone"
        | "each node once"
        | "nothing is dropped"
        | "the good nodes" => |check| agrees(&check.input["ours"], &check.ours),
        "the two fields of a summary" => |check| {
            let fields = ["method_overview", "parent_comparison_experience"];
            check.ours.as_object().is_some_and(|summary| summary.keys().eq(fields))
                && check.ours["method_overview"] == check.reference["method_overview"]
        },
        "the validation score" => {
            |check| check.ours["metric"] == check.input["validation_fitness"] && check.ours["is_buggy"] == false
        }
        "a name" => |check| check.ours.as_str().is_some_and(|name| !name.is_empty()),
        "all that the reference has, and more" => |check| {
            let (Some(reference), Some(ours)) = (check.reference.as_array(), check.ours.as_array()) else {
                return false;
            };
            reference.len() < ours.len() && reference.iter().all(|item| ours.contains(item))
        },
        "the last python block" => |check| check.ours.as_str() == last_python_block(check).as_deref(),
        "the same with line feeds" => |check| {
            let reference = check.reference.as_str().unwrap_or_default();
            check.ours.as_str() == Some(reference.replace('\r', "").as_str())
        },
        "redacted" => |check| check.ours == json!("<REDACTED>\n"),
        "gold when better than the only team" => |check| {
            let (Some(score), Some(team)) = (number(&check.input["score"]), number(&check.input["leaderboard"][0]))
            else {
                return false;
            };
            check.ours == if score < team { "gold" } else { "none" }
        },
        _ => return None,
    })
}

/// Text of the last block that opens with `python`, up to its fence or the end.
fn last_python_block(check: &Check) -> Option<String> {
    let text = check.input["text"].as_str()?;
    let (_, block) = text.rsplit_once("python\n")?;
    Some(block.split("```").next()?.trim().to_owned())
}
