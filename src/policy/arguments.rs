//! Arguments of the table functions that replay policies: constants.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::error::PolicyError;

/// A call of a table function that takes policies and a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    /// How the function is called, for messages.
    pub syntax: &'static str,
    /// Its arguments.
    pub arguments: &'a [Expr],
}

impl Call<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> PolicyError {
        PolicyError::Trace(format!("{}: {what}", self.syntax))
    }

    /// Both arguments.
    pub(super) fn both(&self, first: &str) -> Result<(&Expr, &Expr), PolicyError> {
        match self.arguments {
            [policies, run] => Ok((policies, run)),
            other => Err(self.wrong(format!(
                "it takes {first} and the run's id, found {} arguments",
                other.len()
            ))),
        }
    }

    /// A constant text.
    pub(super) fn text(&self, argument: &Expr, what: &str) -> Result<String, PolicyError> {
        match argument {
            Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => Ok(text.clone()),
            other => Err(self.wrong(format!("the {what} must be a text, found {other}"))),
        }
    }

    /// Names of policies: a list of texts, or one text with commas between them. Each is named once.
    pub(super) fn policies(&self, argument: &Expr) -> Result<Vec<String>, PolicyError> {
        let names: Vec<String> = match argument {
            Expr::Literal(ScalarValue::List(list), _) if list.value_type() == DataType::Utf8 && list.is_valid(0) => {
                let names = list.value(0);
                names.as_string::<i32>().iter().flatten().map(str::to_owned).collect()
            }
            Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
                text.split(',').map(|name| name.trim().to_owned()).collect()
            }
            other => {
                return Err(self.wrong(format!(
                    "the policies must be a list of names, or a text with commas between them, found {other}"
                )));
            }
        };
        if names.iter().all(String::is_empty) {
            return Err(self.wrong("no policy is named"));
        }
        if let Some(twice) = (1..names.len()).find(|place| names[..*place].contains(&names[*place])) {
            return Err(self.wrong(format!("policy '{}' is named twice", names[twice])));
        }
        Ok(names)
    }
}
