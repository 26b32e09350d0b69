//! Machine code as text, by source line: what NVIDIA's disassembler says of what its assembler made.

use crate::cuda_tools;
use crate::exit::{FILE, Failure, Result};
use krn_compiler::source::SourceFile;
use std::process::Command;

/// How to get the disassembler, for a line on the terminal.
const ADVICE: &str = "no nvdisasm found: `cargo xtask setup`, `pip install nvidia-cuda-nvdisasm` and the CUDA toolkit install \
                      one; KRN_NVDISASM names one elsewhere";

/// The instructions of each entry, under the source lines that they come from.
///
/// # Errors
/// There is no disassembler, or it refuses the code.
pub fn listing(source: &SourceFile, code: &[u8]) -> Result<String> {
    let found = cuda_tools::find("nvdisasm")?.ok_or_else(|| Failure::new(FILE, ADVICE))?;
    let failed = |what: String| Failure::new(FILE, format!("`{}`: {what}", found.program.display()));
    let folder = tempfile::tempdir().map_err(|error| failed(format!("no temporary folder: {error}")))?;
    let input = folder.path().join("kernel.cubin");
    std::fs::write(&input, code).map_err(|error| failed(format!("its input cannot be written: {error}")))?;
    let run = Command::new(&found.program)
        .args(["--print-code", "--print-line-info"])
        .arg(&input)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        return Err(failed(format!("it refuses the code:\n{}", said.trim_end())));
    }
    Ok(by_line(source, &String::from_utf8_lossy(&run.stdout)))
}

/// The disassembler's words, less what is no code, with the text of each source line where it begins.
fn by_line(source: &SourceFile, disassembly: &str) -> String {
    let mut text = String::new();
    let mut shown = None;
    for line in disassembly.lines() {
        let line = line.trim_end();
        if let Some(entry) = line.strip_prefix(".text.").and_then(|rest| rest.strip_suffix(':')) {
            let apart = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{apart}{entry}:\n"));
            shown = None;
        } else if let Some(number) = line_number(line) {
            if shown != Some(number) {
                let words = if number <= source.line_count() { source.line_text(number).trim() } else { "" };
                text.push_str(&format!("  // line {number}: {words}\n"));
                shown = Some(number);
            }
        } else if let Some(instruction) = line.trim_start().strip_prefix("/*") {
            // The address, the instruction, and perhaps its encoding.
            let Some((address, rest)) = instruction.split_once("*/") else { continue };
            let words = rest.split("/*").next().unwrap_or_default().trim();
            if !words.is_empty() {
                text.push_str(&format!("    {address}  {words}\n"));
            }
        } else if line.starts_with(".L_") && line.ends_with(':') {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// `//## File "x.krn", line 12`
fn line_number(line: &str) -> Option<u32> {
    let rest = line.trim_start().strip_prefix("//## File ")?;
    let (_, number) = rest.rsplit_once("line ")?;
    number.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_stand_under_their_source_lines() {
        let source = SourceFile::new("t.krn", "kernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = x[i]\n}\n");
        let disassembly = "\t.target\tsm_90\n\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n\
                           \t//## File \"/x/t.krn\", line 2\n        /*0000*/        LDC R1, c[0x0][0x28] ;   /* 0x1 */\n\
                           \t/* 0x003fde0000000800 */\n.L_x_1:\n\t//## File \"/x/t.krn\", line 2\n\
                           \x20       /*0010*/    @P0 EXIT ;\n\t//## File \"/x/t.krn\", line 9\n        /*0020*/ NOP ;\n";
        let expected = "k:\n  // line 2: y[i] = x[i]\n    0000  LDC R1, c[0x0][0x28] ;\n  .L_x_1:\n    0010  @P0 EXIT ;\n  \
                        // line 9: \n    0020  NOP ;\n";
        assert_eq!(by_line(&source, disassembly), expected);
    }
}
