//! What an agent writes into a thread for one request, and moves or drops in the next.
//!
//! aider puts the files of a chat, with an answer of its own, before the newest text of the user, and an
//! answer "Ok." after each output that the user hands in. So the last answer in its request is not the
//! model's, and a view that covers the files fits no later request.

use threadfold::{
    legality,
    message::{Message, Role},
};

/// Returns the number of messages that an earlier request had too, if the agent wrote answers itself
/// after these: no model has read all that follows, and it may stand elsewhere in the next request. So
/// it is sent as it is, and only the messages before it are compacted. `None` if what follows is an
/// answer with what came after it, as in the threads of most agents, or if a call would lose its
/// result.
///
/// ```
/// use threadfold::Message;
/// use threadfold_cli::relay::passing_from;
///
/// let output = [Message::user("The output is..."), Message::assistant("Ok.")];
/// let thread = [&[Message::user("Hi."), Message::assistant("Hello.")], &output[..]].concat();
/// assert_eq!(passing_from(&thread, 2), Some(2));
/// // One more answer of the model, and what the user typed.
/// assert_eq!(passing_from(&[thread, vec![Message::user("Go on.")]].concat(), 3), None);
/// ```
#[must_use]
pub fn passing_from(messages: &[Message], shared: usize) -> Option<usize> {
    let (before, after) = messages.split_at_checked(shared)?;
    let texts = after.iter().skip_while(|message| message.role != Role::User);
    let has_own_answer = texts.into_iter().any(|message| message.role == Role::Assistant);
    let is_whole = legality::open_calls(before).is_empty()
        && after.first().is_none_or(|message| message.tool_results().next().is_none());
    (shared > 0 && has_own_answer && is_whole).then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold::message::{ToolResult, ToolUse};

    #[test]
    fn a_call_is_never_parted_from_its_result() {
        let call = ToolUse::new("t1", "read", serde_json::json!({}));
        let call = Message::new(Role::Assistant, vec![call.into()]);
        let result = Message::new(Role::User, vec![ToolResult::text("t1", "done").into()]);
        let own = [Message::user("The output is..."), Message::assistant("Ok.")];
        let thread = [&[Message::user("Hi."), call, result][..], &own].concat();
        let found: Vec<_> = (0..=5).map(|shared| passing_from(&thread, shared)).collect();
        assert_eq!(found, [None, Some(1), None, Some(3), None, None]);
    }

    #[test]
    fn beyond_the_end_of_the_thread_there_is_nothing() {
        assert_eq!(passing_from(&[Message::user("Hi.")], 2), None);
    }
}
