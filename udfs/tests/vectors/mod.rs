//! Golden vectors: every case of a file runs through SQL that is made of the functions.

mod graders;
#[path = "../../../tests/vectors/harness/mod.rs"]
mod harness;
mod logs;
mod programs;
mod search;
mod utilities;

use datafusion::prelude::SessionContext;

use self::harness::{Case, Check, Predicate};
use crate::session::session;

/// How one file is checked.
pub trait Suite {
    /// Name of the file without its ending.
    const FILE: &'static str;
    /// Predicates that rules may name.
    const PREDICATES: &'static [(&'static str, Predicate)] = &[];

    /// Comparisons of a case.
    async fn checks(context: &SessionContext, case: &Case) -> Vec<Check>;
}

async fn run<S: Suite>() {
    let context = session();
    harness::compare(S::FILE, S::PREDICATES, async |case| S::checks(&context, case).await).await;
}

macro_rules! suites {
    ($($test:ident: $suite:ty),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                run::<$suite>().await;
            }
        )+
    };
}

suites! {
    evo_normalization: utilities::Normalization,
    evo_softmax: utilities::Softmax,
    evo_linear_decay: utilities::LinearDecay,
    evo_parent_utilities: search::ParentUtilities,
    evo_best_node: search::BestNode,
    evo_extract_imports: programs::Imports,
    method_family: programs::MethodFamily,
    evo_error_signature: programs::ErrorSignature,
    code_extraction: programs::CodeExtraction,
    thinking_tags: programs::ThinkingTags,
    log_validation_score: logs::ValidationScore,
    log_clear: logs::ClearLog,
    evo_trim_long_string: logs::TrimLongString,
    evo_prompt_sanitization: logs::PromptSanitization,
    medal_positions: graders::MedalPositions,
    medal_grade: graders::MedalGrade,
    submit_grade_and_medal: graders::SubmitGradeAndMedal,
    reward_signed_score: graders::SignedScore,
}
