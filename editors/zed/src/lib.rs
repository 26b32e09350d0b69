//! Tells Zed how the language server is started.

use zed_extension_api::{self as zed, LanguageServerId, Result, Worktree};

struct Krn;

impl zed::Extension for Krn {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &Worktree) -> Result<zed::Command> {
        let found = worktree.which("krn");
        let command = found.ok_or("there is no `krn` in the path: `cargo install --path . --locked` installs it")?;
        Ok(zed::Command { command, args: vec!["lsp".to_string()], env: worktree.shell_env() })
    }
}

zed::register_extension!(Krn);
