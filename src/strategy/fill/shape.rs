//! Results in user messages: agents of a text protocol write commands into their answers, and get
//! the outputs as if the user had typed them.

use std::collections::HashMap;

use crate::message::{Message, Role};

/// How many bytes of a text are its opening.
const OPENING: usize = 8;

/// Fewer messages than this are too few to show a repetition.
const MIN: usize = 5;

/// Returns for each message whether it is such a result: it follows an answer that holds a fenced
/// block or a tag and no call, and begins like most user messages do. No list of agents is needed.
pub(crate) fn results(messages: &[Message]) -> Vec<bool> {
    let mut found = vec![false; messages.len()];
    let mut openings: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut typed = 0_usize;
    for (index, message) in messages.iter().enumerate() {
        if !message.is_typed() {
            continue;
        }
        typed += 1;
        let before = index.checked_sub(1).and_then(|before| messages.get(before));
        let answers = before.is_some_and(holds_command);
        if let Some(opening) = opening(message).filter(|_| answers) {
            openings.entry(opening).or_default().push(index);
        }
    }
    for indices in openings.into_values() {
        if indices.len() >= MIN && indices.len() > typed / 2 {
            for index in indices {
                if let Some(found) = found.get_mut(index) {
                    *found = true;
                }
            }
        }
    }
    if found.contains(&true) {
        notices(messages, &mut found);
    }
    found
}

/// Adds the notices of such an agent, as about an answer without a command: what it says in the same
/// words again.
fn notices(messages: &[Message], found: &mut [bool]) {
    /// The bytes of a text that a person does not type twice.
    const LONG: usize = 40;
    let others = messages.iter().enumerate().zip(&*found);
    let others = others.filter(|((_, message), is_result)| message.is_typed() && !**is_result);
    let mut told: HashMap<&str, Vec<usize>> = HashMap::new();
    for ((index, message), _) in others {
        let text = message.texts().next().and_then(|text| text.trim_start().get(..LONG));
        if let Some(text) = text {
            told.entry(text).or_default().push(index);
        }
    }
    for index in told.into_values().filter(|indices| indices.len() > 1).flatten() {
        if let Some(found) = found.get_mut(index) {
            *found = true;
        }
    }
}

/// Returns the messages with such results marked as untyped, or `None` if there are none.
pub(crate) fn marked(messages: &[Message]) -> Option<Vec<Message>> {
    let results = results(messages);
    results.contains(&true).then(|| {
        let marked = messages.iter().zip(results);
        marked
            .map(|(message, is_result)| match is_result {
                true => message.clone().untyped(),
                false => message.clone(),
            })
            .collect()
    })
}

fn opening(message: &Message) -> Option<&str> {
    let text = message.texts().next()?.trim_start();
    text.get(..OPENING).filter(|opening| !opening.contains('\n'))
}

/// Whether an answer asks for something in its text: it has no call, and holds a fenced block or a
/// tag.
fn holds_command(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.tool_uses().next().is_none()
        && message.texts().any(|text| text.contains("```") || text.contains("</"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(count: usize) -> Vec<Message> {
        let mut thread = vec![Message::user("Mend the parser. Answer with one command.")];
        for step in 0..count {
            thread.push(Message::assistant(format!("I look.\n\n```bash\ncat src/{step}.rs\n```")));
            thread.push(Message::user(format!("<output>\nline {step}\n</output>")));
        }
        thread
    }

    #[test]
    fn outputs_that_follow_commands_and_begin_alike_are_results() {
        let thread = protocol(6);
        let found = results(&thread);
        assert_eq!(found.iter().filter(|is_result| **is_result).count(), 6);
        assert!(!found[0], "the task was typed");
        assert!(marked(&thread).unwrap()[2].typed_blocks().next().is_none());
    }

    #[test]
    fn a_notice_that_comes_again_is_none_of_the_users_texts() {
        let notice = "Answer with exactly one command in a fenced block; I found two of them.";
        let mut thread = protocol(6);
        for text in [notice, "Use the branch that I named in the first message.", notice] {
            thread.extend([Message::assistant("Done."), Message::user(text)]);
        }
        let found = results(&thread);
        assert_eq!(found[found.len() - 5..], [true, false, false, false, true]);
    }

    #[test]
    fn questions_that_begin_alike_are_typed() {
        let talk = (0..9).flat_map(|turn| {
            [Message::user(format!("Question {turn}?")), Message::assistant("An answer.")]
        });
        assert!(marked(&talk.collect::<Vec<_>>()).is_none());
        assert!(marked(&protocol(3)).is_none(), "three are no repetition");
    }
}
