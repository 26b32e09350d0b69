//! What is said of a checked run, and the exit code that goes with it.

use crate::exit::{MISMATCH, NOT_VERIFIED};
use crate::numbers;
use krn_runtime::verify::{CheckReport, Judgement, OutputCheck};

/// The exit code; 0 for what is verified, and for what both sides refused: that is told as the failure that it is.
pub fn exit_code(judgement: &Judgement) -> u8 {
    match judgement {
        Judgement::Verified | Judgement::Refused => 0,
        Judgement::NotVerified(_) => NOT_VERIFIED,
        Judgement::Wrong | Judgement::Broken(_) => MISMATCH,
    }
}

/// For programs.
pub fn word(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Verified => "verified",
        Judgement::NotVerified(_) => "not verified",
        Judgement::Broken(_) => "broken promise",
        Judgement::Wrong => "wrong",
        Judgement::Refused => "refused",
    }
}

/// Why a run is not verified, or which promise is broken.
pub fn reason(judgement: &Judgement) -> Option<&str> {
    match judgement {
        Judgement::NotVerified(reason) | Judgement::Broken(reason) => Some(reason),
        _ => None,
    }
}

/// One line an output, and warnings: how it compares.
pub fn text(report: &CheckReport) -> String {
    let mut text: String = report.outputs.iter().map(|output| output_text(report, output)).collect();
    match report.judgement() {
        Judgement::NotVerified(reason) => text.push_str(&format!("  NOT VERIFIED: {reason}\n")),
        Judgement::Broken(reason) => text.push_str(&format!("  BROKEN PROMISE: {reason}\n")),
        Judgement::Verified | Judgement::Wrong | Judgement::Refused => {}
    }
    text
}

fn output_text(report: &CheckReport, output: &OutputCheck) -> String {
    let found = &output.report;
    let name = &output.name;
    let sampled = output.sampled.map_or(String::new(), |count| {
        format!(
            " in a sample of {} elements (a full check would be too slow; --full-check does it)",
            numbers::grouped(count)
        )
    });
    if found.mismatches > 0 {
        let mut text = format!(
            "  {name}: WRONG, {} of {} values differ{sampled}\n",
            numbers::grouped(found.mismatches),
            numbers::grouped(found.compared)
        );
        if let Some(worst) = &found.worst {
            let field = if worst.field.is_empty() { String::new() } else { format!(".{}", worst.field) };
            text.push_str(&format!(
                "    worst at {:?}{field}: got {}, expected {} within {:e}\n",
                worst.index, worst.got, worst.expected, worst.bound
            ));
        }
        return text;
    }
    if found.values == 0 {
        return format!("  {name}: empty, nothing to compare\n");
    }
    if report.objection(output).is_some() {
        let judged = numbers::grouped(found.judged());
        return format!(
            "  {name}: NOT VERIFIED, {judged} of {} values judged\n",
            numbers::grouped(found.values)
        );
    }
    let share =
        found.worst.as_ref().map_or(0.0, |worst| if worst.excess.is_finite() { worst.excess } else { 0.0 });
    let bound = if share > 0.0 && found.compared > found.loose {
        format!(", at most {:.0}% of the error bound used", share * 100.0)
    } else {
        String::new()
    };
    let judged = numbers::grouped(found.judged());
    let agree =
        if found.judged() == 1 { "1 value agrees".to_string() } else { format!("{judged} values agree") };
    let mut text = format!("  {name}: verified, {agree}{sampled}{bound}\n");
    let second = &found.second;
    if second.judged > 0 {
        let how = if second.exact {
            "bit for bit with one lawful evaluation".to_string()
        } else {
            format!("with the spread of {} lawful evaluations", second.evaluations)
        };
        let why =
            if found.loose > 0 { "the error bound exceeds the value" } else { "there is no error bound" };
        text.push_str(&format!(
            "    warning: {why} for {} of these; they agree {how}\n",
            numbers::grouped(second.judged)
        ));
    }
    if second.left_out > 0 {
        text.push_str(&format!(
            "    warning: these are a sample: of {} of {} values nothing is known (--full-check judges them)\n",
            numbers::grouped(second.left_out),
            numbers::grouped(found.values)
        ));
    }
    if output.open() > 0 {
        text.push_str(&format!(
            "    warning: {} were judged; of the others {}\n",
            report.share(output),
            report.open_because(found)
        ));
    }
    text
}
