//! Tells Zed how the language server and the debugger are started.

use zed_extension_api::{self as zed, LanguageServerId, Result, Worktree, serde_json};

struct Krn;

/// Where the tool lies.
fn tool(worktree: &Worktree) -> Result<String> {
    let found = worktree.which("krn");
    Ok(found.ok_or("there is no `krn` in the path: `cargo install --path . --locked` installs it")?)
}

impl zed::Extension for Krn {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &Worktree) -> Result<zed::Command> {
        Ok(zed::Command { command: tool(worktree)?, args: vec!["lsp".to_string()], env: worktree.shell_env() })
    }

    fn get_dap_binary(
        &mut self,
        _: String,
        task: zed::DebugTaskDefinition,
        own: Option<String>,
        worktree: &Worktree,
    ) -> Result<zed::DebugAdapterBinary, String> {
        let command = match own {
            Some(own) => own,
            None => tool(worktree)?,
        };
        Ok(zed::DebugAdapterBinary {
            command: Some(command),
            arguments: vec!["dap".to_string()],
            envs: worktree.shell_env(),
            cwd: Some(worktree.root_path()),
            connection: None,
            request_args: zed::StartDebuggingRequestArguments {
                configuration: task.config,
                request: zed::StartDebuggingRequestArgumentsRequest::Launch,
            },
        })
    }

    /// What the dialog for a new session says.
    fn dap_config_to_scenario(&mut self, config: zed::DebugConfig) -> Result<zed::DebugScenario, String> {
        let zed::DebugRequest::Launch(launch) = config.request else {
            return Err("`krn` attaches to nothing: it starts a kernel".to_string());
        };
        let stop = config.stop_on_entry.unwrap_or(true);
        let fields = serde_json::json!({ "request": "launch", "program": launch.program, "stopOnEntry": stop });
        Ok(zed::DebugScenario {
            label: config.label,
            adapter: config.adapter,
            build: None,
            config: fields.to_string(),
            tcp_connection: None,
        })
    }

    /// Nothing is attached to.
    fn dap_request_kind(
        &mut self,
        _: String,
        _: serde_json::Value,
    ) -> Result<zed::StartDebuggingRequestArgumentsRequest, String> {
        Ok(zed::StartDebuggingRequestArgumentsRequest::Launch)
    }
}

zed::register_extension!(Krn);
