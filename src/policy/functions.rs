//! Functions that views and policies need from the session: the current run, and settings out of stored options.

use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, Float64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use super::draw_function::DrawRecordFunction;

/// Name of [`CurrentRun`]: the one function of the session that a policy may call.
pub const CURRENT_RUN: &str = "current_run";

/// Where the functions of the session are listed.
pub(super) const SECTION: DocSection = DocSection {
    include: true,
    label: "Session",
    description: None,
};

/// Register the functions of this module.
pub fn register_functions(context: &SessionContext) -> Result<()> {
    context.register_udf(ScalarUDF::new_from_impl(CurrentRun::new()));
    context.register_udf(ScalarUDF::new_from_impl(OptionNumber::new()));
    context.register_udf(ScalarUDF::new_from_impl(DrawRecordFunction::default()));
    Ok(())
}

/// The session variable `clade.run_id`; an empty one is not set.
fn run_id(options: &ConfigOptions) -> ScalarValue {
    let value = options
        .extensions
        .iter()
        .find(|(prefix, _)| *prefix == "clade")
        .and_then(|(_, variables)| {
            variables
                .entries()
                .into_iter()
                .find(|entry| entry.key == "run_id")
                .and_then(|entry| entry.value)
        });
    ScalarValue::Utf8(value.filter(|value| !value.is_empty()))
}

/// `current_run()`: the run that `run.*` shows.
///
/// It becomes a constant when a statement is planned, so a filter on it prunes files. A plan that was optimised keeps
/// the run of its session.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CurrentRun {
    signature: Signature,
}

impl CurrentRun {
    fn new() -> Self {
        Self {
            signature: Signature::nullary(Volatility::Stable),
        }
    }
}

impl ScalarUDFImpl for CurrentRun {
    fn name(&self) -> &str {
        CURRENT_RUN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn simplify(&self, _args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(
            run_id(info.config_options()),
            None,
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(run_id(&args.config_options)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
            Documentation::builder(
                SECTION,
                "Id of the run that `run.*` and the policies show: the session variable `clade.run_id`; NULL when it is not set.",
                "current_run()",
            )
            .with_sql_example("SELECT count(*) FROM evo.nodes WHERE run_id = current_run();")
            .build()
        });
        Some(&DOCUMENTATION)
    }
}

/// `option_number(options, name)`: a number out of stored options.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OptionNumber {
    signature: Signature,
}

impl OptionNumber {
    fn new() -> Self {
        Self {
            signature: Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable),
        }
    }
}

/// The number under `name` in a JSON object.
fn number(options: &str, name: &str) -> Option<f64> {
    serde_json::from_str::<serde_json::Value>(options)
        .ok()?
        .get(name)?
        .as_f64()
}

impl ScalarUDFImpl for OptionNumber {
    fn name(&self) -> &str {
        "option_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [options, names] = arrays.as_slice() else {
            return internal_err!("option_number takes two arguments");
        };
        let (options, names) = (options.as_string::<i32>(), names.as_string::<i32>());
        let numbers: Float64Array = options
            .iter()
            .zip(names.iter())
            .map(|(options, name)| number(options?, name?))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(numbers)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
            Documentation::builder(
                SECTION,
                "A number out of the options of a run or statement, which are JSON text; NULL when it is not set or is no number.",
                "option_number(options, name)",
            )
            .with_sql_example("SELECT option_number(options, 'drafts') FROM evo.runs;")
            .with_argument("options", "Options as stored in `evo.runs` and `evo.statements`.")
            .with_argument("name", "Name of the option.")
            .build()
        });
        Some(&DOCUMENTATION)
    }
}
