//! Calls and their results under edits: what would be divided, and by whom.
//!
//! An edit divides a call from its result when it takes one of them, and also when it takes
//! neither and puts a message between them that ends the turn: providers look for results in the
//! turn right behind the call.

use std::collections::HashMap;

use super::{
    edit::{self, CompactError, Edit},
    position::Position,
    server_calls,
    turns::{ById, Mention, Turn, Turns},
};
use crate::message::{Message, Role, Text};

/// Refuses edits that divide a call from its result, or that take or cover up a call that is still
/// open.
///
/// An edit that begins and ends elsewhere takes a call and its result both, or neither; so only the
/// turns at which edits begin and end are looked at. Of a provider's own calls every answer is looked
/// at: it may stand many turns after its call.
pub(super) fn check(messages: &[Message], edits: &[(usize, Edit)]) -> Result<(), CompactError> {
    let ends = |edit: &Edit| [edit.range.start.message, edit.range.end.message];
    // Every turn that starts before this message was looked at.
    let mut seen = 0;
    for at in edits.iter().flat_map(|(_, edit)| ends(edit)) {
        if at < seen {
            continue;
        }
        let mut turns = Turns::around(messages, at);
        while let Some((turn, next)) = turns.step() {
            let Some(turn) = turn.filter(|turn| turn.start >= seen) else { continue };
            if turn.start > at {
                seen = turn.start;
                break;
            }
            check_turn(messages, edits, turn, next)?;
            seen = turn.end;
        }
    }
    check_servers(messages, edits)
}

/// Refuses edits that divide a provider's call from its answer in another turn. What is put between
/// the two divides nothing: the provider does not ask that they stand side by side.
fn check_servers(messages: &[Message], edits: &[(usize, Edit)]) -> Result<(), CompactError> {
    server_calls::pairs(messages).try_for_each(|pair| check_pair(edits, &[], pair))
}

fn check_turn(
    messages: &[Message],
    edits: &[(usize, Edit)],
    turn: &Turn<'_>,
    next: Option<&Turn<'_>>,
) -> Result<(), CompactError> {
    let between = endings(messages, edits, turn, next);
    for pair in pairs(turn, next) {
        check_pair(edits, &between, pair)?;
    }
    if next.is_none() { check_open(edits, turn) } else { Ok(()) }
}

fn check_pair(
    edits: &[(usize, Edit)],
    between: &[(Position, usize)],
    (call, result): (Mention<'_>, Mention<'_>),
) -> Result<(), CompactError> {
    let (of_call, of_result) = (edit_over(edits, call.at), edit_over(edits, result.at));
    let divides = match (of_call, of_result) {
        (Some(_), Some(_)) => None,
        (Some(index), None) | (None, Some(index)) => Some(index),
        (None, None) => {
            let behind = between.partition_point(|(start, _)| *start <= call.at);
            let next = between.get(behind).filter(|(start, _)| *start <= result.at);
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
/// behind it would be divided although neither goes.
fn endings(
    messages: &[Message],
    edits: &[(usize, Edit)],
    turn: &Turn<'_>,
    next: Option<&Turn<'_>>,
) -> Vec<(Position, usize)> {
    let first = turn.uses.iter().chain(&turn.server_uses).map(|call| call.at).min();
    let last = next.and_then(|next| next.results.last()).or(turn.server_results.last());
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let behind = edits.partition_point(|(_, edit)| edit.range.start <= first);
    let among = edits.iter().skip(behind).take_while(|(_, edit)| edit.range.start <= last.at);
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

/// Refuses edits of calls that nobody has answered yet, and messages of another role behind them.
fn check_open(edits: &[(usize, Edit)], last: &Turn<'_>) -> Result<(), CompactError> {
    // What ends the turn behind one call ends it behind all that stand before, so the last such
    // edit answers for all.
    let ends = |edit: &Edit| edit.insert.iter().any(|message| message.role != last.role);
    let ending = edits.iter().rev().find(|(_, edit)| ends(edit));
    let covers = |call: &Mention<'_>| {
        let ended = ending.filter(|(_, edit)| edit.range.start > call.at);
        edit_over(edits, call.at).or(ended.map(|(index, _)| *index))
    };
    let mut open = last.uses.iter().filter_map(|call| Some((covers(call)?, call.id.clone())));
    let Some((index, id)) = open.next() else { return Ok(()) };
    let rest = open.filter(|(other, _)| *other == index).map(|(_, id)| id);
    Err(CompactError::OpenCalls { index, ids: std::iter::once(id).chain(rest).collect() })
}

/// Returns the index of the edit that takes the block at this position, if one does.
fn edit_over(edits: &[(usize, Edit)], at: Position) -> Option<usize> {
    let after = edits.partition_point(|(_, edit)| edit.range.start <= at);
    let (index, edit) = edits.get(after.checked_sub(1)?)?;
    (at < edit.range.end).then_some(*index)
}

/// The calls of a turn with their results in the next, and the provider's own within the turn.
fn pairs<'t>(
    turn: &'t Turn<'_>,
    next: Option<&'t Turn<'_>>,
) -> impl Iterator<Item = (Mention<'t>, Mention<'t>)> {
    let results = next.map_or(&[][..], |next| &next.results);
    let results = ById::new(results);
    let answered = turn.uses.iter();
    let answered = answered.filter_map(move |call| Some((*call, results.first(call.id)?)));
    answered.chain(server_pairs(turn))
}

/// The provider's answers to its own calls, each with the last call of its id before it: an id may
/// come again within a turn.
fn server_pairs<'t>(turn: &'t Turn<'_>) -> impl Iterator<Item = (Mention<'t>, Mention<'t>)> {
    let mut made = turn.server_uses.iter().peekable();
    let mut latest: HashMap<&Text, Mention<'t>> = HashMap::new();
    turn.server_results.iter().filter_map(move |result| {
        while let Some(call) = made.next_if(|call| call.at < result.at) {
            latest.insert(call.id, *call);
        }
        Some((*latest.get(result.id)?, *result))
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;
    use crate::compact::drawn;
    use crate::message::{ContentBlock, Json, ServerToolResult, ServerToolUse};

    /// As `check`, with a look at every turn.
    fn check_all(messages: &[Message], edits: &[(usize, Edit)]) -> Result<(), CompactError> {
        let mut turns = Turns::of(messages);
        while let Some((turn, next)) = turns.step() {
            turn.map_or(Ok(()), |turn| check_turn(messages, edits, turn, next))?;
        }
        check_servers(messages, edits)
    }

    /// Edits of a thread, in order and none over another.
    fn edits(
        thread: &[Message],
        places: &[(Index, Index)],
        inserts: &[Option<bool>],
    ) -> Vec<(usize, Edit)> {
        let mut places: Vec<Position> = places
            .iter()
            .map(|(message, block)| {
                let message = message.index(thread.len() + 1);
                let blocks = thread.get(message).map_or(0, |message| message.content.len());
                Position { message, block: block.index(blocks + 1) }
            })
            .collect();
        places.sort();
        let said = |user| if user { Message::user("So?") } else { Message::assistant("So.") };
        let edit = |(index, (place, insert)): (usize, (&[Position], &Option<bool>))| {
            let insert = insert.map(said).into_iter().collect();
            (index, Edit { range: place[0]..place[1], insert })
        };
        places.chunks_exact(2).zip(inserts).enumerate().map(edit).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8_000) })]

        #[test]
        fn edits_divide_nothing_far_from_where_they_begin_and_end(
            thread in drawn::thread(),
            places in vec(any::<(Index, Index)>(), 0..7),
            inserts in vec(any::<Option<bool>>(), 3),
        ) {
            let edits = edits(&thread, &places, &inserts);
            prop_assert_eq!(check(&thread, &edits), check_all(&thread, &edits));
        }
    }

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
