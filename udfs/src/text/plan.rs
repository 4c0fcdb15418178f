//! The plan that a model wrote before its program.

use super::thinking::strip_thinking;

/// The words before the first code fence, without thinking; empty when the text has no fence.
pub fn plan_text(text: &str) -> String {
    let answer = strip_thinking(text);
    answer
        .split_once("```")
        .map(|(plan, _)| plan.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::plan_text;

    #[test]
    fn words_before_the_program() {
        assert_eq!(
            plan_text("<think>hm ```x```</think>\nUse a forest.\n```python\nx = 1\n```"),
            "Use a forest."
        );
        assert_eq!(plan_text("no program"), "");
    }
}
