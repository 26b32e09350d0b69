//! What can be done with a kernel, shown above it.

use super::commands;
use super::document::Document;
use gen_lsp_types::{CodeLens, Command};
use serde_json::json;

pub fn lenses(document: &Document) -> Vec<CodeLens> {
    let mut found = Vec::new();
    for kernel in document.kernels() {
        let range = document.range(kernel.name.span);
        for (command, title) in commands::ALL {
            let command = Command {
                title: (*title).to_string(),
                command: (*command).to_string(),
                arguments: Some(vec![json!(document.uri.0), json!(kernel.name.name)]),
                tooltip: None,
            };
            found.push(CodeLens { range, command: Some(command), data: None });
        }
    }
    found
}
