//! Facts of a summary that the thread does not state.

use super::{facts::Facts, gather::Gathered, options::AuditOptions};
use crate::{
    ledger,
    message::{Message, steps},
    prose::{FactClass, Property, passages, without_typed},
};
use threadfold_core::retention::Fact;

/// The maximum number of facts that are searched for in the thread. Each costs a search of all texts.
const MOST: usize = 200;

/// Returns the invented facts of a summary: paths, URLs, commands, names of code, versions, hashes
/// and numbers that neither the facts of the conversation nor a text of the thread contains.
///
/// Facts are compared letter by letter, without case and white space: a number in another spelling
/// counts as invented, and a false sentence without such facts is not found. The lists of rules and
/// of the user's words that this crate adds to summaries are not checked. At most 200 facts are
/// searched for.
///
/// ```
/// use threadfold::{Message, retention::{RetentionPolicy, Facts, invented}};
///
/// let thread = [Message::user("Fix src/parse.rs."), Message::assistant("It took 12 ms.")];
/// let facts = Facts::of(&thread, &RetentionPolicy::default());
/// assert_eq!(invented("src/parse.rs took 12 ms.", &facts, &thread), []);
/// let found = invented("src/lex.rs took 15 ms.", &facts, &thread);
/// let texts: Vec<&str> = found.iter().map(|fact| fact.text.as_str()).collect();
/// assert_eq!(texts, ["src/lex.rs", "15 ms"]);
/// ```
#[must_use]
pub fn invented<'m>(
    summary: &str,
    facts: &Facts,
    thread: impl IntoIterator<Item = &'m Message>,
) -> Vec<Fact> {
    let own = without_typed(&ledger::without_titled(summary));
    let own: String = own.split_inclusive('\n').filter(|line| !is_note(line.trim_end())).collect();
    let options = AuditOptions { tool_mentions: 1, ..AuditOptions::default() };
    let mut stated = Gathered::default();
    stated.read(0, &Message::user(own), &options);
    let may_be =
        |class: FactClass, key: &str| class.is(Property::Checked) && !facts.knows(class, key);
    let unknown = stated.relevant(&options).filter(|(class, key, _)| may_be(*class, key));
    let unknown = unknown.map(|(class, key, mention)| {
        let positions = mention.positions.clone().into_kept();
        let fact = Fact::new(class, mention.text.as_str().into(), 1, mention.speaker, positions);
        // All spellings of a path share the name of the file.
        let name = if class == FactClass::Path { key.rsplit('/').next() } else { None };
        (folded(name.unwrap_or(key)), fact)
    });
    let mut unknown: Vec<(String, Fact)> = unknown.collect();
    unknown.sort_by(|(_, one), (_, other)| (one.class, &one.text).cmp(&(other.class, &other.text)));
    unknown.truncate(MOST);
    for message in thread {
        if unknown.is_empty() {
            break;
        }
        let mut forget = |text: &str| {
            let text = folded(text);
            unknown.retain(|(part, _)| !steps::through(&text).contains(part.as_str()));
        };
        passages(message, &mut |_, _, text| forget(text));
        // The texts of a call are its strings: the names of its fields and its numbers are facts too.
        for call in message.tool_uses() {
            forget(&call.name);
            forget(call.input.as_str());
        }
    }
    unknown.into_iter().map(|(_, fact)| fact).collect()
}

/// Whether a line is a note of this crate about omitted text: `[... 763 bytes omitted ...]`, `(763
/// bytes left out)`.
fn is_note(line: &str) -> bool {
    let line = line.trim_start_matches("> ");
    let notes = [("[... ", " omitted ...]"), ("(", " left out)")];
    notes.iter().any(|(start, end)| line.starts_with(start) && line.ends_with(end))
}

/// Returns a text in lower case and without white space, quotation marks and backticks.
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in steps::through(text).chars() {
        if letter.is_whitespace() || matches!(letter, '`' | '"' | '\'') {
            continue;
        }
        // Nearly all of it is ASCII, for which there is a shorter way.
        match letter.is_ascii() {
            true => out.push(letter.to_ascii_lowercase()),
            false => out.extend(letter.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        message::{Json, Role, ToolUse},
        retention::RetentionPolicy,
    };

    fn found(thread: &[Message], summary: &str) -> Vec<String> {
        let facts = Facts::of(&[], &RetentionPolicy::default());
        invented(summary, &facts, thread).iter().map(|fact| fact.text.to_string()).collect()
    }

    #[test]
    fn facts_in_the_input_of_a_call_are_not_invented() {
        let of = |input: serde_json::Value| {
            let call = ToolUse::new("t1", "write", Json::from(input));
            let thread = [Message::new(Role::Assistant, vec![call.into()])];
            found(&thread, "It was src/new.rs, which took 417 ms.")
        };
        assert_eq!(of(json!({"note": "Asked:\n\t\"417 ms\"\\\nsrc/new.rs"})), Vec::<String>::new());
        assert_eq!(of(json!({})), ["src/new.rs", "417 ms"]);
    }

    #[test]
    fn a_text_is_folded_to_lower_case_without_space_and_quotation_marks() {
        let text = "A b\t\u{b}\"C'`\n\u{a0}\u{2003}\u{c4}\u{130}\u{6f22} D\u{1c}e";
        assert_eq!(folded(text), "abc\u{e4}i\u{307}\u{6f22}d\u{1c}e");
    }

    #[test]
    fn the_lists_that_this_crate_adds_and_its_notes_are_not_checked() {
        let summary = "[... 763 bytes omitted ...]\nThe user's words:\n- Take src/other.rs.\n";
        assert_eq!(found(&[], summary), Vec::<String>::new());
    }
}
