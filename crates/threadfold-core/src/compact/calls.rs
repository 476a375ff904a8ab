//! Calls and their results under edits: what would be divided, and by whom.
//!
//! An edit divides a call from its result when it takes one of them, and also when it takes
//! neither and puts a message between them that ends the turn: providers look for results in the
//! turn right after the call.

use super::{
    edit::{self, CompactError, Edit},
    position::Position,
    turns::{ById, Mention, ServerCalls, ServerMention, Turn, turns},
};
use crate::message::{Message, Role};

/// Refuses edits that divide a call from its result, or that take or cover up a call that is still
/// open.
pub(super) fn check(messages: &[Message], edits: &[(usize, Edit)]) -> Result<(), CompactError> {
    let mut servers = ServerCalls::default();
    let mut turns = turns(messages).peekable();
    while let Some(turn) = turns.next() {
        let next = turns.peek();
        let between = endings(messages, edits, &turn, next);
        let results = ById::new(next.map_or(&[], |next| &next.results));
        for call in &turn.uses {
            if let Some(result) = results.first(call.id) {
                check_pair(edits, &between, *call, result)?;
            }
        }
        for (call, answer) in servers.answers(&turn) {
            let Some(call) = call else { continue };
            // What comes between the turns of the two divides nothing: the provider does not ask
            // that they stand side by side.
            let between = if call.at.message < turn.start { &[] } else { between.as_slice() };
            check_pair(edits, between, call, answer)?;
        }
        if next.is_none() {
            check_open(edits, &turn)?;
        }
    }
    Ok(())
}

fn check_pair(
    edits: &[(usize, Edit)],
    between: &[(Position, usize)],
    call: Mention<'_>,
    result: Mention<'_>,
) -> Result<(), CompactError> {
    let (of_call, of_result) = (edit_over(edits, call.at), edit_over(edits, result.at));
    let divides = match (of_call, of_result) {
        (Some(_), Some(_)) => None,
        (Some(index), None) | (None, Some(index)) => Some(index),
        (None, None) => {
            let after = between.partition_point(|(start, _)| *start <= call.at);
            let next = between.get(after).filter(|(start, _)| *start <= result.at);
            next.map(|(_, index)| *index)
        }
    };
    match divides {
        Some(index) => Err(CompactError::SplitsToolPair { index, id: call.id.clone() }),
        None => Ok(()),
    }
}

/// Returns where edits put messages in that end the turn, among the calls of a turn and their
/// results: the start and the index of each such edit, in order. A call before one and its result
/// after it would be divided although neither goes.
fn endings(
    messages: &[Message],
    edits: &[(usize, Edit)],
    turn: &Turn<'_>,
    next: Option<&Turn<'_>>,
) -> Vec<(Position, usize)> {
    let server_calls = turn.servers.iter().filter_map(ServerMention::call);
    let first = turn.uses.iter().chain(server_calls).map(|call| call.at).min();
    let server_answer = turn.servers.iter().rev().find_map(ServerMention::answer);
    let last = next.and_then(|next| next.results.last()).or(server_answer);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let before = edits.partition_point(|(_, edit)| edit.range.start <= first);
    let among = edits.iter().skip(before).take_while(|(_, edit)| edit.range.start <= last.at);
    let border = Position::before(turn.end);
    let mut turned = false;
    let mut endings = Vec::new();
    for (index, edit) in among {
        turned |= edit::normal(messages, edit.range.start) > border;
        let reaches_border = edit::normal(messages, edit.range.end) >= border;
        let mut fits = true;
        for message in &edit.insert {
            fits &= match message.role {
                Role::Assistant => !turned,
                Role::User => reaches_border,
                Role::System => false,
            };
            turned |= message.role == Role::User;
        }
        if !fits {
            endings.push((edit.range.start, *index));
        }
    }
    endings
}

/// Refuses edits that take open calls, and messages of another role after such calls.
fn check_open(edits: &[(usize, Edit)], last: &Turn<'_>) -> Result<(), CompactError> {
    // What ends the turn after one call ends it after all calls before, so the last such edit
    // counts for all.
    let mut ending = edits.iter().rev();
    let ending = ending.find(|(_, edit)| edit.insert.iter().any(|it| it.role != last.role));
    let covered = last.uses.iter().filter_map(|call| {
        let ended = ending.filter(|(_, edit)| edit.range.start > call.at);
        let index = edit_over(edits, call.at).or(ended.map(|(index, _)| *index))?;
        Some((index, call.id.clone()))
    });
    let mut covered = covered.peekable();
    let Some((index, _)) = covered.peek().cloned() else { return Ok(()) };
    let ids = covered.filter(|(other, _)| *other == index).map(|(_, id)| id).collect();
    Err(CompactError::OpenCalls { index, ids })
}

/// Returns the index of the edit that takes the block at this position, if one does.
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
    fn a_provider_call_is_paired_with_its_own_result_where_the_id_comes_again() {
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
