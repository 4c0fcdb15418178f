//! The reference page of all functions.

use std::fmt::Write;

use crate::{Function, all_functions};

/// Markdown page that documents every function, family by family.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Functions\n\nThis page is generated from the functions themselves. NULL gives NULL; NaN and infinities are invalid \
         scores. Window functions read the whole partition. Arguments can be given by name: `softmax(x => u, temperature => 1)`.\n",
    );
    let mut family = "";
    let functions = all_functions();
    for function in &functions {
        let Some(documentation) = function.documentation() else {
            continue;
        };
        if documentation.doc_section.label != family {
            family = documentation.doc_section.label;
            append(&mut page, format_args!("\n## {family}\n"));
        }
        append_function(&mut page, function);
    }
    page
}

fn append_function(page: &mut String, function: &Function) {
    let Some(documentation) = function.documentation() else {
        return;
    };
    append(
        page,
        format_args!(
            "\n### {}\n\n{}\n\n```sql\n{}\n```\n",
            function.name(),
            documentation.description.trim(),
            documentation.syntax_example
        ),
    );
    for (name, description) in documentation.arguments.iter().flatten() {
        append(page, format_args!("\n- `{name}`: {}", description.trim()));
    }
    page.push('\n');
    if let Some(example) = &documentation.sql_example {
        append(page, format_args!("\nExample:\n\n```sql\n{}\n```\n", example.trim()));
    }
}

fn append(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = page.write_fmt(text);
}
