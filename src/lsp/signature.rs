//! The parameters of the call that is being written.

use super::context::call;
use super::document::Document;
use super::words;
use gen_lsp_types::{
    ActiveParameter, MarkupContent, MarkupKind, ParameterInformation, Position, SignatureHelp,
    SignatureInformation,
};
use krn_compiler::builtins::Builtin;
use krn_compiler::names::SymbolKind;
use krn_compiler::syntax::TokenKind;

pub fn help(document: &Document, position: Position) -> Option<SignatureHelp> {
    let (word, at) = call(document, document.offset(position))?;
    let name = document.slice(word.span);
    let names = document.names();
    let own = names.symbols.iter().position(|known| known.kind == SymbolKind::Function && known.name == name);
    let (label, parameters, text) = if let Some(function) = own.filter(|_| word.kind == TokenKind::Name) {
        let written =
            document.slice(names.symbols[function].whole).split('{').next().unwrap_or_default().trim_end();
        let of_it = names.symbols.iter().filter(|known| known.owner == Some(function));
        let parameters = of_it.filter(|known| known.kind == SymbolKind::Parameter);
        (written.to_string(), parameters.map(|known| document.slice(known.whole).to_string()).collect(), None)
    } else if let Some(builtin) = Builtin::from_name(name).filter(|_| word.kind == TokenKind::Name) {
        let parameters = builtin.parameters().iter().map(|name| (*name).to_string()).collect();
        (words::signature(builtin), parameters, Some(words::builtin(builtin)))
    } else {
        (format!("{name}(names: value)"), vec!["names: value".to_string()], Some(words::reduction(name)?))
    };
    // Of a reduction all is one part.
    let active = at.min(parameters.len().saturating_sub(1)) as u32;
    let information = |label: String| ParameterInformation { label: label.into(), documentation: None };
    Some(SignatureHelp {
        signatures: vec![SignatureInformation {
            label,
            documentation: text.map(|value| MarkupContent { kind: MarkupKind::Markdown, value }.into()),
            parameters: Some(parameters.into_iter().map(information).collect::<Vec<_>>()),
            active_parameter: Some(ActiveParameter::Int(active)),
        }],
        active_signature: Some(0),
        active_parameter: Some(ActiveParameter::Int(active)),
    })
}
