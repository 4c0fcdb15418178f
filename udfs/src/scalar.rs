//! What the scalar wrappers share.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::cast::as_string_view_array;
use datafusion::logical_expr::{Signature, TypeSignature, Volatility};

/// Signature with one fixed type a parameter; parameters can be given by name.
pub(crate) fn exact(parameters: &[(&str, DataType)]) -> Signature {
    named(
        parameters,
        TypeSignature::Exact(parameters.iter().map(|(_, kind)| kind.clone()).collect()),
    )
}

/// Signature whose last parameters may be left out, down to `required`.
pub(crate) fn with_optional(parameters: &[(&str, DataType)], required: usize) -> Signature {
    let types: Vec<DataType> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
    let choices = (required..=types.len())
        .map(|count| TypeSignature::Exact(types[..count].to_vec()))
        .collect();
    named(parameters, TypeSignature::OneOf(choices))
}

/// Signature with parameter names.
pub(crate) fn named(parameters: &[(&str, DataType)], types: TypeSignature) -> Signature {
    Signature {
        parameter_names: Some(parameters.iter().map(|(name, _)| (*name).to_owned()).collect()),
        ..Signature::new(types, Volatility::Immutable)
    }
}

/// Values of two text columns row by row; nothing where one is NULL.
pub(crate) fn text_pairs(columns: &[ArrayRef]) -> Result<impl Iterator<Item = Option<(&str, &str)>>> {
    let (left, right) = (as_string_view_array(&columns[0])?, as_string_view_array(&columns[1])?);
    Ok(left.iter().zip(right).map(|(left, right)| left.zip(right)))
}

/// Maps a text column to a text column; NULL stays NULL.
pub(crate) fn map_text(
    column: &ArrayRef,
    kernel: impl for<'a> Fn(&'a str) -> Option<Cow<'a, str>>,
) -> Result<ArrayRef> {
    let mut mapped = StringBuilder::with_capacity(column.len(), 0);
    for text in as_string_view_array(column)? {
        mapped.append_option(text.and_then(&kernel));
    }
    Ok(Arc::new(mapped.finish()))
}

/// Makes a scalar function over its columns. Its attributes must give it a `doc` function, as `user_doc` does.
macro_rules! scalar_function {
    ($(#[$meta:meta])* $type:ident, $name:literal, $signature:expr, $returns:expr, $kernel:expr) => {
        $(#[$meta])*
        #[derive(Debug, PartialEq, Eq, Hash)]
        pub struct $type {
            signature: datafusion::logical_expr::Signature,
        }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    signature: $signature,
                }
            }
        }

        impl datafusion::logical_expr::ScalarUDFImpl for $type {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &datafusion::logical_expr::Signature {
                &self.signature
            }

            fn return_type(
                &self,
                _: &[arrow::datatypes::DataType],
            ) -> datafusion::common::Result<arrow::datatypes::DataType> {
                Ok($returns)
            }

            fn invoke_with_args(
                &self,
                args: datafusion::logical_expr::ScalarFunctionArgs,
            ) -> datafusion::common::Result<datafusion::logical_expr::ColumnarValue> {
                datafusion::functions::utils::make_scalar_function($kernel, vec![])(&args.args)
            }

            fn documentation(&self) -> Option<&datafusion::logical_expr::Documentation> {
                self.doc()
            }
        }
    };
}

pub(crate) use scalar_function;

/// A scalar function for the list of all functions.
pub(crate) fn scalar(function: impl datafusion::logical_expr::ScalarUDFImpl + 'static) -> crate::Function {
    crate::Function::Scalar(Arc::new(datafusion::logical_expr::ScalarUDF::new_from_impl(function)))
}
