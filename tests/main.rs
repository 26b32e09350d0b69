//! The tests of the tool and of the repository, as modules of one program: built one by one, each would link the whole
//! compiler, which takes longer than most of them run. What needs a process of its own stands alone in `Cargo.toml`.

mod browser_support;
mod build;
mod builtins;
mod cli;
mod costs;
mod dap;
mod directives;
mod examples;
mod fmt;
mod host_programs;
mod ladder;
mod lsp;
mod markdown;
mod pages;
mod pass_subsets;
mod profile;
mod python_host;
mod recognition;
mod reduce;
mod regret;
mod report;
mod report_browser;
mod report_support;
mod slow_loops;
mod spellings;
mod tool_support;
mod verdicts;
mod walls;
