//! What the server can do, as it tells the client.

use super::positions::Encoding;
use super::{commands, semantic};
use gen_lsp_types::{
    CodeActionKind, CodeActionOptions, CodeLensOptions, CompletionOptions, ExecuteCommandOptions, Full,
    RenameOptions, SemanticTokensLegend, SemanticTokensOptions, ServerCapabilities, SignatureHelpOptions,
    TextDocumentSyncKind, TextDocumentSyncOptions,
};

pub fn capabilities(encoding: Encoding) -> ServerCapabilities {
    let words = |list: &[&str]| Some(list.iter().map(|word| (*word).to_string()).collect());
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::Incremental),
                ..Default::default()
            }
            .into(),
        ),
        hover_provider: Some(true.into()),
        definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        folding_range_provider: Some(true.into()),
        document_formatting_provider: Some(true.into()),
        inlay_hint_provider: Some(true.into()),
        rename_provider: Some(RenameOptions { prepare_provider: Some(true), ..Default::default() }.into()),
        completion_provider: Some(CompletionOptions {
            trigger_characters: words(&["."]),
            ..Default::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: words(&["(", ","]),
            ..Default::default()
        }),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: semantic::TYPES.iter().map(|name| (*name).to_string()).collect(),
                    token_modifiers: semantic::MODIFIERS.iter().map(|name| (*name).to_string()).collect(),
                },
                full: Some(Full::Bool(true)),
                ..Default::default()
            }
            .into(),
        ),
        code_lens_provider: Some(CodeLensOptions::default()),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![
                    CodeActionKind::QuickFix,
                    CodeActionKind::RefactorExtract,
                    CodeActionKind::RefactorRewrite,
                ]),
                resolve_provider: Some(true),
                ..Default::default()
            }
            .into(),
        ),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: commands::ALL.iter().map(|(name, _)| (*name).to_string()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    }
}
