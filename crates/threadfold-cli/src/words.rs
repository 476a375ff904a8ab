//! What a person calls a thread by, the first words that were typed into it, and a time.

use threadfold::{Message, message::Timestamp};

/// Returns the first words that a person typed, on one line of at most this many characters; empty if
/// no person typed any.
///
/// Agents put descriptions of the machine and of the project into the first texts of the user, in
/// tags (`<environment_context>`) or under a heading of a file (`# AGENTS.md`). These are passed over
/// while other words follow.
pub(crate) fn first_words<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    most: usize,
) -> String {
    /// The texts that are looked at.
    const TEXTS: usize = 40;
    let typed = messages.into_iter().filter(|message| message.is_typed());
    let texts = typed.flat_map(|message| &message.content).filter_map(|block| block.as_text());
    let mut described = None;
    for text in texts.take(TEXTS) {
        let rest = after_tags(text);
        if !rest.is_empty() && !rest.starts_with("# AGENTS.md") {
            return one_line(rest, most);
        }
        described = described.or(Some(text));
    }
    described.map_or_else(String::new, |text| one_line(text, most))
}

/// The day and the minute of a time: `2026-11-23 23:03 UTC`.
pub(crate) fn minute(at: Timestamp) -> String {
    let at = at.to_string();
    at.get(..16).map_or(at.clone(), |minute| format!("{} UTC", minute.replace('T', " ")))
}

/// The text after the elements that it begins with.
fn after_tags(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(inside) = rest.strip_prefix('<') {
        let name = inside.split(|c: char| c == '>' || c.is_whitespace()).next().unwrap_or_default();
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        let Some((_, after)) = rest.split_once(&format!("</{name}>")).filter(|_| is_name) else {
            break;
        };
        rest = after.trim_start();
    }
    rest
}

/// The text on one line, also where it has several.
fn one_line(text: &str, most: usize) -> String {
    let words = text.split_whitespace().take(most);
    threadfold_terminal::first_line(&words.collect::<Vec<_>>().join(" "), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_are_those_of_a_person() {
        let rows = [
            (vec!["Fix the parser.\nThen test it."], "Fix the parser. Then test it."),
            (
                vec!["<environment_context>\n<cwd>/a</cwd>\n</environment_context>", "Go on."],
                "Go on.",
            ),
            (vec!["<system-reminder>a</system-reminder>\n<b c=\"d\">e</b> Do it."], "Do it."),
            (vec!["# AGENTS.md instructions for /a\n\nBe brief.", "Why?"], "Why?"),
            (vec!["<only>this</only>"], "<only>this</only>"),
            (vec!["a < b"], "a < b"),
            (vec![], ""),
        ];
        for (texts, words) in rows {
            let messages: Vec<Message> = texts.into_iter().map(Message::user).collect();
            assert_eq!(first_words(&messages, 40), words);
        }
        let long = [Message::user("word ".repeat(1_000))];
        assert_eq!(first_words(&long, 10), "word word…");
    }
}
