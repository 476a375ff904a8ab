//! The file that the summarising model edits, and its tool calls: each call of a round gets exactly one result.

use threadfold_edl::{Limits, Workspace, tool};

use super::condense::condense;
use crate::message::{Message, Role, Text, ToolResult, ToolUse};

/// Upper limit for the whole workspace (summary, scratch files, registers), as a multiple of the
/// limit for the summary.
const SCRATCH: usize = 4;

/// The file that the model edits. Its content at the end of the run is the summary.
const SUMMARY: &str = "/summary.md";

/// The summary in a workspace; empty if the model deleted the file.
pub(super) fn summary(workspace: &Workspace) -> &str {
    workspace.text(SUMMARY).unwrap_or_default()
}

/// A workspace that holds only the summary.
pub(super) fn workspace_of(summary: &str) -> Workspace {
    let mut workspace = Workspace::new();
    // The path is a constant that names a file, so the insertion cannot fail.
    let _ = workspace.insert(SUMMARY, summary);
    workspace
}

/// Runs the calls, and returns their results in order. A call that is malformed, names an unknown
/// tool or makes the summary too large gets an error that explains how to correct it, and changes
/// nothing. `too_large` becomes the summary of the last edit that did not fit, shortened without a
/// model.
pub(super) fn run_calls(
    workspace: &mut Workspace,
    calls: &[ToolUse],
    summary_bytes: usize,
    too_large: &mut Option<Text>,
) -> Message {
    let results = calls.iter().map(|call| {
        let id = call.id.clone();
        match run_call(workspace, call, summary_bytes, too_large) {
            Ok(text) => ToolResult::text(id, shown(text)).into(),
            Err(text) => ToolResult::error(id, shown(text)).into(),
        }
    });
    Message::new(Role::User, results.collect())
}

fn run_call(
    workspace: &mut Workspace,
    call: &ToolUse,
    summary_bytes: usize,
    too_large: &mut Option<Text>,
) -> Result<String, String> {
    let input = call.input.json().and_then(|json| json.to_value());
    let input = input.map_err(|error| format!("The input cannot be read: {error}"))?;
    let before = workspace.clone();
    let reply = tool::call(&call.name, workspace, &input, &Limits::default());
    let found = summary(workspace).len();
    if found > summary_bytes {
        *too_large = Some(condense(summary(workspace), summary_bytes).into());
        *workspace = before;
        return Err(format!(
            "Refused: /summary.md would have {found} bytes; the maximum is {summary_bytes}. \
             Nothing was changed. Write less, or shorten what no longer matters."
        ));
    }
    if size(workspace) > summary_bytes.saturating_mul(SCRATCH) {
        *workspace = before;
        return Err("Refused: too much beside /summary.md. Nothing was changed.".into());
    }
    reply
}

/// Returns the text of a result. Providers refuse an empty one.
fn shown(text: String) -> String {
    if text.trim().is_empty() { "(nothing to show)".into() } else { text }
}

fn size(workspace: &Workspace) -> usize {
    let files: usize = workspace.files().map(|(_, text)| text.len()).sum();
    let registers: usize = workspace.registers().map(|(_, text)| text.len()).sum();
    files + registers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Json, ToolInput};

    fn call(name: &str, input: &str) -> ToolUse {
        let mut call = ToolUse::new("t1", name, Json::default());
        call.input = ToolInput::from_text(input);
        call
    }

    fn run(workspace: &mut Workspace, calls: &[ToolUse]) -> Vec<(bool, String)> {
        let message = run_calls(workspace, calls, 40, &mut None);
        let text = |result: &ToolResult| result.content[0].as_text().unwrap().to_string();
        message.tool_results().map(|result| (result.is_error, text(result))).collect()
    }

    #[test]
    fn every_call_gets_one_result_and_the_bad_ones_change_nothing() {
        let mut workspace = workspace_of("");
        let calls = [
            call("edl", "{\"script\":"),
            call("rm", "{}"),
            call("edl", r#"{"script":"file /summary.md\nselect eof\ninsert_after \"kept\""}"#),
            call("get_file", r#"{"paths":["/summary.md"]}"#),
        ];
        let results = run(&mut workspace, &calls);
        let errors: Vec<bool> = results.iter().map(|(is_error, _)| *is_error).collect();
        assert_eq!(errors, [true, true, false, false], "{results:?}");
        assert_eq!(summary(&workspace), "kept");
    }

    #[test]
    fn a_summary_over_its_cap_is_refused_and_the_one_before_stays() {
        let mut workspace = workspace_of("");
        let long = "x".repeat(60);
        let script = format!("file /summary.md\\nselect eof\\ninsert_after \\\"{long}\\\"");
        let results = run(&mut workspace, &[call("edl", &format!("{{\"script\":\"{script}\"}}"))]);
        assert!(
            results[0].0 && results[0].1.contains("60 bytes; the maximum is 40"),
            "{results:?}"
        );
        assert_eq!(summary(&workspace), "");
    }
}
