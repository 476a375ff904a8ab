//! Runs the tool calls of the summarising model: each call of a round gets exactly one result.

use threadfold_edl::{Limits, Workspace, tool};

use super::{condense::condense, data::summary};
use crate::message::{ContentBlock, Message, Role, ToolResult, ToolUse};

/// Upper limit for the whole workspace (summary, scratch files, registers), as a multiple of the
/// limit for the summary.
const SCRATCH: usize = 4;

/// The results of the calls of a round.
pub(super) struct RoundResults {
    /// The results, in the order of the calls.
    pub(super) message: Message,
    /// The summary after the last edit that was refused because it did not fit, shortened without a
    /// model.
    pub(super) too_large: Option<String>,
}

/// Runs the calls. A call that is malformed, names an unknown tool or makes the summary too large
/// gets an error that explains how to correct it, and changes nothing.
pub(super) fn run_calls(
    workspace: &mut Workspace,
    calls: &[ToolUse],
    summary_bytes: usize,
) -> RoundResults {
    let mut too_large = None;
    let mut results: Vec<ContentBlock> = Vec::with_capacity(calls.len());
    for call in calls {
        results.push(match run_call(workspace, call, summary_bytes) {
            Ok(text) => ToolResult::text(call.id.clone(), text).into(),
            Err((text, shorter)) => {
                too_large = shorter.or(too_large);
                ToolResult::error(call.id.clone(), text).into()
            }
        });
    }
    RoundResults { message: Message::new(Role::User, results), too_large }
}

/// Why a call changed nothing, and the summary that did not fit, shortened.
type Refused = (String, Option<String>);

fn run_call(
    workspace: &mut Workspace,
    call: &ToolUse,
    summary_bytes: usize,
) -> Result<String, Refused> {
    let input = call.input.json().and_then(|json| json.to_value());
    let input = input.map_err(|error| (format!("The input cannot be read: {error}"), None))?;
    let before = workspace.clone();
    let reply = tool::call(&call.name, workspace, &input, &Limits::default());
    let found = summary(workspace).len();
    if found > summary_bytes {
        let shorter = condense(summary(workspace), summary_bytes);
        *workspace = before;
        let text = format!(
            "Refused: /summary.md would have {found} bytes; the maximum is {summary_bytes}. \
             Nothing was changed. Write less, or shorten what no longer matters."
        );
        return Err((text, Some(shorter)));
    }
    if size(workspace) > summary_bytes.saturating_mul(SCRATCH) {
        *workspace = before;
        return Err(("Refused: too much beside /summary.md. Nothing was changed.".into(), None));
    }
    reply.map(shown).map_err(|text| (shown(text), None))
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

    fn workspace() -> Workspace {
        crate::strategy::chunked::data::workspace_of("")
    }

    fn run(workspace: &mut Workspace, calls: &[ToolUse]) -> Vec<(bool, String)> {
        let message = run_calls(workspace, calls, 40).message;
        let text = |result: &ToolResult| result.content[0].as_text().unwrap().to_string();
        message.tool_results().map(|result| (result.is_error, text(result))).collect()
    }

    #[test]
    fn every_call_gets_one_result_and_the_bad_ones_change_nothing() {
        let mut workspace = workspace();
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
        let mut workspace = workspace();
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
