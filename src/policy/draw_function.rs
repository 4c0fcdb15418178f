//! `draw_record(draw)`: a stored draw, which is JSON text, as columns.

use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, AsArray, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructArray,
    StructBuilder,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::draw::{DrawRecord, ParentChance};
use super::functions::SECTION;

/// `draw_record(draw)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DrawRecordFunction {
    signature: Signature,
}

impl Default for DrawRecordFunction {
    fn default() -> Self {
        Self {
            signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable),
        }
    }
}

fn parent_fields() -> Fields {
    Fields::from(vec![
        Field::new("parent_id", DataType::Utf8, true),
        Field::new("parent2_id", DataType::Utf8, true),
        Field::new("weight", DataType::Float64, true),
        Field::new("probability", DataType::Float64, true),
    ])
}

fn record_fields() -> Fields {
    let parent = Field::new_list_field(DataType::Struct(parent_fields()), true);
    Fields::from(vec![
        Field::new("operator_probability", DataType::Float64, true),
        Field::new("priority", DataType::Float64, true),
        Field::new("candidates", DataType::Int64, true),
        Field::new("effective_candidates", DataType::Float64, true),
        Field::new("parents", DataType::List(Arc::new(parent)), true),
    ])
}

/// Builds the rows of the answer.
struct RecordBuilder {
    operator_probability: Float64Builder,
    priority: Float64Builder,
    candidates: Int64Builder,
    effective_candidates: Float64Builder,
    parents: ListBuilder<StructBuilder>,
    valid: Vec<bool>,
}

impl RecordBuilder {
    fn new() -> Self {
        let columns: Vec<Box<dyn ArrayBuilder>> = vec![
            Box::new(StringBuilder::new()),
            Box::new(StringBuilder::new()),
            Box::new(Float64Builder::new()),
            Box::new(Float64Builder::new()),
        ];
        Self {
            operator_probability: Float64Builder::new(),
            priority: Float64Builder::new(),
            candidates: Int64Builder::new(),
            effective_candidates: Float64Builder::new(),
            parents: ListBuilder::new(StructBuilder::new(parent_fields(), columns)),
            valid: Vec::new(),
        }
    }

    fn append(&mut self, record: Option<&DrawRecord>) -> Result<()> {
        self.valid.push(record.is_some());
        self.operator_probability.append_option(record.and_then(|record| {
            let chance = record
                .operators
                .iter()
                .find(|chance| chance.operator == record.operator)?;
            Some(chance.probability)
        }));
        self.priority.append_option(record.map(|record| record.priority));
        let count = record.map(|record| i64::try_from(record.candidate_count).unwrap_or(i64::MAX));
        self.candidates.append_option(count);
        self.effective_candidates
            .append_option(record.map(|record| record.effective_candidates));
        for chance in record.into_iter().flat_map(|record| &record.candidates) {
            self.append_parent(chance)?;
        }
        self.parents.append(record.is_some());
        Ok(())
    }

    fn append_parent(&mut self, chance: &ParentChance) -> Result<()> {
        let parent = self.parents.values();
        let texts = [Some(&chance.parent_id), chance.parent2_id.as_ref()];
        for (place, text) in texts.into_iter().enumerate() {
            match parent.field_builder::<StringBuilder>(place) {
                Some(column) => column.append_option(text),
                None => return internal_err!("column {place} of a drawn parent is no text"),
            }
        }
        for (place, number) in (2..).zip([chance.weight, chance.probability]) {
            match parent.field_builder::<Float64Builder>(place) {
                Some(column) => column.append_value(number),
                None => return internal_err!("column {place} of a drawn parent is no number"),
            }
        }
        parent.append(true);
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.operator_probability.finish()),
            Arc::new(self.priority.finish()),
            Arc::new(self.candidates.finish()),
            Arc::new(self.effective_candidates.finish()),
            Arc::new(self.parents.finish()),
        ];
        let nulls = Some(NullBuffer::from(self.valid));
        Ok(Arc::new(StructArray::try_new(record_fields(), columns, nulls)?))
    }
}

impl ScalarUDFImpl for DrawRecordFunction {
    fn name(&self) -> &str {
        "draw_record"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(record_fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [draws] = arrays.as_slice() else {
            return internal_err!("draw_record takes one argument");
        };
        let mut builder = RecordBuilder::new();
        for draw in draws.as_string::<i32>() {
            // A draw that another version wrote in another way has no columns here; its text is still in the attempt.
            let record = draw.and_then(|draw| serde_json::from_str::<DrawRecord>(draw).ok());
            builder.append(record.as_ref())?;
        }
        Ok(ColumnarValue::Array(builder.finish()?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
            Documentation::builder(
                SECTION,
                "The draw of an attempt, which is stored as JSON text, as a struct: operator_probability, priority, candidates, effective_candidates, and the list parents of structs (parent_id, parent2_id, weight, probability). NULL when the text is no draw.",
                "draw_record(draw)",
            )
            .with_sql_example("SELECT draw_record(draw)['candidates'] FROM evo.attempts;")
            .with_argument("draw", "Draw as stored in `evo.attempts`.")
            .build()
        });
        Some(&DOCUMENTATION)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn a_draw_becomes_columns_and_other_text_becomes_null() {
        let context = SessionContext::new();
        super::super::register_functions(&context).unwrap();
        let sql = r#"SELECT d['operator_probability'] AS share, d['candidates'] AS candidates, d['parents'] AS parents FROM (
            SELECT draw_record(draw) AS d FROM (VALUES
            ('{"operator":"improve","parents":["a"],"priority":1.0,"operators":[{"operator":"draft","weight":1.0,"probability":0.25},{"operator":"improve","weight":3.0,"probability":0.75}],"candidates":[{"parent_id":"a","weight":2.0,"probability":1.0}],"candidate_count":1,"effective_candidates":1.0,"numbers":[0.5,0.1]}'),
            ('{"operator":"draft","parents":[],"priority":0.0,"operators":[],"candidates":[],"candidate_count":0,"effective_candidates":0.0,"numbers":[]}'),
            ('{}'), (NULL)) AS t(draw))"#;
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        insta::assert_snapshot!(pretty_format_batches(&batches).unwrap().to_string(), @r"
        +-------+------------+---------------------------------------------------------------+
        | share | candidates | parents                                                       |
        +-------+------------+---------------------------------------------------------------+
        | 0.75  | 1          | [{parent_id: a, parent2_id: , weight: 2.0, probability: 1.0}] |
        |       | 0          | []                                                            |
        |       |            |                                                               |
        |       |            |                                                               |
        +-------+------------+---------------------------------------------------------------+
        ");
    }
}
