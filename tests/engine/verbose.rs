//! A generator whose programs are as long as those of a model, for tests and benchmarks of what grows with a search: a child is
//! its first parent with a few lines changed.

use std::fmt::Write;
use std::time::Duration;

use async_trait::async_trait;
use clade::model::{GenerateRequest, Generator, ModelError, ModelInfo, Sample, UsageDetails};
use tokio_util::sync::CancellationToken;

/// Writes programs of so many lines.
#[derive(Debug)]
pub struct Verbose {
    pub lines: u64,
}

impl Verbose {
    /// A first program.
    fn draft(&self, seed: u64) -> String {
        let family = [
            "sklearn.linear_model",
            "sklearn.ensemble",
            "lightgbm",
            "sklearn.neighbors",
        ][(seed % 4) as usize];
        let mut program = format!("import os\nimport {family}\nimport pandas as pd\n\n");
        for line in 0..self.lines {
            let _ = writeln!(
                program,
                "feature_{line} = frame['column_{line}'] * {}  # a step of the preparation",
                seed % 97
            );
        }
        program
    }

    fn program(&self, request: &GenerateRequest) -> String {
        let seed = request.seed;
        let parent = request.nodes.first().and_then(|node| node.code.as_deref());
        let base = parent.map_or_else(|| self.draft(seed), str::to_owned);
        let changed = [seed % self.lines, (seed / 7) % self.lines];
        let mut program = String::new();
        for line in base
            .lines()
            .filter(|line| !line.starts_with("score") && !line.starts_with("fail"))
        {
            let is_changed = |place: &u64| line.starts_with(&format!("feature_{place} "));
            match changed.iter().find(|place| is_changed(place)) {
                Some(place) => {
                    let _ = writeln!(
                        program,
                        "feature_{place} = frame['column_{place}'].rank() ** {}",
                        seed % 89
                    );
                }
                None => {
                    let _ = writeln!(program, "{line}");
                }
            }
        }
        let _ = match seed % 10 {
            0 => writeln!(program, "fail = 'error'"),
            1 => writeln!(program, "fail = 'timeout'"),
            _ => writeln!(program, "score = {}", (seed % 9973) as f64 / 9973.0),
        };
        program
    }
}

#[async_trait]
impl Generator for Verbose {
    fn name(&self) -> &str {
        "verbose"
    }

    fn describe(&self) -> ModelInfo {
        ModelInfo::free("test")
    }

    async fn generate(&self, request: &GenerateRequest, _: &CancellationToken) -> Result<Sample, ModelError> {
        let plan = format!(
            "Two of the features are ranked in place of being scaled, since their tails are long (seed {}). It should help where \
             the metric looks at the order, and costs next to nothing in time.",
            request.seed
        );
        Ok(Sample {
            text: format!("{plan}\n\n```python\n{}```\n", self.program(request)),
            reasoning: None,
            finish_reason: "stop".into(),
            tokens_prompt: None,
            tokens_completion: None,
            usage: UsageDetails::default(),
            cost_usd: Some(0.0),
            cached: false,
            latency: Duration::from_millis(1),
        })
    }
}
