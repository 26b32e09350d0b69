//! `krn explain`

use crate::arguments::ExplainOptions;
use crate::exit::{Failure, INPUT, Result};
use crate::files;
use krn_compiler::diagnostic::codes::ALL;
use krn_compiler::diagnostic::explain;
use krn_compiler::diagnostic::suggest::nearest;

pub fn run(options: &ExplainOptions) -> Result<()> {
    let Some(code) = &options.code else {
        let list: String = ALL.iter().map(|(code, title, _)| format!("{}  {title}\n", code.0)).collect();
        return files::print(&list);
    };
    match explain(code) {
        Some((_, page)) => files::print(page),
        None => {
            let near = nearest(&code.to_uppercase(), ALL.iter().map(|(code, ..)| code.0));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Err(Failure::new(INPUT, format!("there is no code `{code}`{hint} (`krn explain` lists them)")))
        }
    }
}
