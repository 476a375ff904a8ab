//! Checks that edits do not separate tool calls from their results.
//!
//! An edit separates a call from its result if it removes only one of them. It also does so if it
//! inserts a message between them that ends the run, because providers require results in the run
//! directly after the call.

use super::{
    edit::{self, CompactError, Edit},
    position::Position,
    runs::{ById, Mention, RoleRun, ServerCalls, ServerMention, role_runs},
};
use crate::message::{Message, Role};

/// Refuses edits that separate a call from its result, and edits that remove or follow an open
/// call.
pub(super) fn check(messages: &[Message], edits: &[(usize, Edit)]) -> Result<(), CompactError> {
    let mut servers = ServerCalls::default();
    let mut runs = role_runs(messages).peekable();
    while let Some(run) = runs.next() {
        let next = runs.peek();
        let separators = separators(messages, edits, &run, next);
        let results = ById::new(next.map_or(&[], |next| &next.results));
        for call in &run.uses {
            if let Some(result) = results.first(call.id) {
                check_pair(edits, &separators, *call, result)?;
            }
        }
        for (call, answer) in servers.answers(&run) {
            let Some(call) = call else { continue };
            // The provider does not require its own call and result in adjacent runs, so a message
            // between their runs does not separate them.
            let separators = if call.at.message < run.start { &[] } else { separators.as_slice() };
            check_pair(edits, separators, call, answer)?;
        }
        if next.is_none() {
            check_open(edits, &run)?;
        }
    }
    Ok(())
}

fn check_pair(
    edits: &[(usize, Edit)],
    separators: &[(Position, usize)],
    call: Mention<'_>,
    result: Mention<'_>,
) -> Result<(), CompactError> {
    let separating = match (edit_over(edits, call.at), edit_over(edits, result.at)) {
        (Some(_), Some(_)) => None,
        (Some(index), None) | (None, Some(index)) => Some(index),
        (None, None) => {
            let after = separators.partition_point(|(start, _)| *start <= call.at);
            let next = separators.get(after).filter(|(start, _)| *start <= result.at);
            next.map(|(_, index)| *index)
        }
    };
    match separating {
        Some(index) => Err(CompactError::SplitsToolPair { index, id: call.id.clone() }),
        None => Ok(()),
    }
}

/// Returns the start and index of each edit that inserts a message within a run or directly after
/// it, and thereby ends the run, in order. Such an edit separates a call before it from a result
/// after it, even if it removes neither.
fn separators(
    messages: &[Message],
    edits: &[(usize, Edit)],
    run: &RoleRun<'_>,
    next: Option<&RoleRun<'_>>,
) -> Vec<(Position, usize)> {
    let server_calls = run.servers.iter().filter_map(ServerMention::call);
    let first = run.uses.iter().chain(server_calls).map(|call| call.at).min();
    let server_answer = run.servers.iter().rev().find_map(ServerMention::answer);
    let last = next.and_then(|next| next.results.last()).or(server_answer);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let before = edits.partition_point(|(_, edit)| edit.range.start <= first);
    let among = edits.iter().skip(before).take_while(|(_, edit)| edit.range.start <= last.at);
    let run_end = Position::before(run.end);
    let mut is_after_run = false;
    let mut separators = Vec::new();
    for (index, edit) in among {
        is_after_run |= edit::normalized(messages, edit.range.start) > run_end;
        let reaches_run_end = edit::normalized(messages, edit.range.end) >= run_end;
        let mut keeps_run = true;
        for message in &edit.insert {
            keeps_run &= match message.role {
                Role::Assistant => !is_after_run,
                Role::User => reaches_run_end,
                Role::System => false,
            };
            is_after_run |= message.role == Role::User;
        }
        if !keeps_run {
            separators.push((edit.range.start, *index));
        }
    }
    separators
}

/// Refuses edits that remove open calls, or insert a message of another role after them.
fn check_open(edits: &[(usize, Edit)], last: &RoleRun<'_>) -> Result<(), CompactError> {
    // A message of another role ends the run for all calls before it, so only the last such edit
    // matters.
    let mut inserting = edits.iter().rev();
    let inserting =
        inserting.find(|(_, edit)| edit.insert.iter().any(|message| message.role != last.role));
    let affected = last.uses.iter().filter_map(|call| {
        let follows = inserting.filter(|(_, edit)| edit.range.start > call.at);
        let index = edit_over(edits, call.at).or(follows.map(|(index, _)| *index))?;
        Some((index, call.id.clone()))
    });
    let mut affected = affected.peekable();
    let Some((index, _)) = affected.peek().cloned() else { return Ok(()) };
    let ids = affected.filter(|(other, _)| *other == index).map(|(_, id)| id).collect();
    Err(CompactError::OpenCalls { index, ids })
}

/// Returns the index of the edit that removes the block at this position, if there is one.
fn edit_over(edits: &[(usize, Edit)], at: Position) -> Option<usize> {
    let after = edits.partition_point(|(_, edit)| edit.range.start <= at);
    let (index, edit) = edits.get(after.checked_sub(1)?)?;
    (at < edit.range.end).then_some(*index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ContentBlock, Json, ServerToolResult, ServerToolUse};

    fn refusal(messages: &[Message], edits: &[(usize, Edit)]) -> Option<String> {
        check(messages, edits).err().map(|error| error.to_string())
    }

    #[test]
    fn a_provider_call_is_paired_with_its_own_result_if_the_id_repeats() {
        let call = || ContentBlock::from(ServerToolUse::new("s1", "search", Json::default()));
        let result = || ContentBlock::from(ServerToolResult::new("s1", "found", Json::default()));
        let thread = [Message::new(Role::Assistant, vec![call(), result(), call(), result()])];
        let place = |block| Position { message: 0, block };
        let between = Edit { range: place(3)..place(3), insert: vec![Message::user("and")] };
        let divided = "replacement 0 divides tool call s1 from its result";
        assert_eq!(refusal(&thread, &[(0, between)]).as_deref(), Some(divided));
        let whole = Edit { range: place(2)..place(4), insert: Vec::new() };
        assert_eq!(refusal(&thread, &[(0, whole)]), None);
    }

    #[test]
    fn a_provider_call_and_its_answer_in_a_later_turn_go_together() {
        let thread = [
            Message::user("Search."),
            Message::new(
                Role::Assistant,
                vec![ServerToolUse::new("s1", "search", Json::default()).into()],
            ),
            Message::user("You may."),
            Message::user("Go on."),
            Message::new(
                Role::Assistant,
                vec![
                    ServerToolResult::new("s1", "found", Json::default()).into(),
                    ContentBlock::text("Found."),
                ],
            ),
        ];
        let over = |start, end| Edit {
            range: Position::before(start)..Position::before(end),
            insert: Vec::new(),
        };
        let divided = "replacement 0 divides tool call s1 from its result";
        for (start, end) in [(0, 2), (0, 3), (3, 5), (4, 5)] {
            let edit = over(start, end);
            assert_eq!(refusal(&thread, &[(0, edit)]).as_deref(), Some(divided), "{start}..{end}");
        }
        let between = Edit { insert: vec![Message::assistant("So.")], ..over(2, 4) };
        for edit in [over(1, 5), over(0, 1), between] {
            assert_eq!(refusal(&thread, &[(0, edit)]), None);
        }
    }
}
