//! The texts with which every strategy asks a model for a summary.
//!
//! A request consists of an opening, a list of sections, the rule that values stay literal, and
//! asides: the user's instructions, standing rules, next prompt. A host may replace the opening and the sections. The
//! rest stays, because the acceptance check and the next compaction rely on it.

use std::{borrow::Cow, collections::HashSet};

use super::{
    clip::{ASIDE_TOKENS, clip},
    run_error::RunError,
    view::View,
};
use crate::message::Text;

/// The built-in sections of a summary.
pub(super) const SECTIONS: &str = include_str!("prompts/sections.md");

/// The rule that a summary states values instead of describing them.
pub(super) const VALUES: &str = "Write values, not descriptions: names, numbers, dates, paths, \
                                 commands and errors word for word (\"port 8443\", not \"a \
                                 port\").";

/// The line before the user's instructions. It asks for what they name first, because a later shortening keeps the
/// beginning of a summary.
pub(super) const FOCUS: &str = "The user asks you to pay special attention to this. Begin every \
                                section with what concerns it, and shorten everything else first:";

/// The line before the standing rules.
pub(super) const RULES: &str =
    "These rules are kept word for word beside the summary, so it need not repeat them:";

/// Returns the list of sections: the host's, or the built-in one.
pub(super) fn sections<'t>(own: &[Text], built_in: &'t str) -> Cow<'t, str> {
    if own.is_empty() {
        return built_in.trim_end().into();
    }
    own.iter().map(|section| format!("- {}", section.trim())).collect::<Vec<_>>().join("\n").into()
}

/// Checks the texts that a host put in place of the built-in ones.
///
/// # Errors
///
/// [`RunError::Option`] if one is blank.
pub(super) fn check(prompt: Option<&Text>, sections: &[Text]) -> Result<(), RunError> {
    if prompt.is_some_and(Text::is_blank) {
        let rule = "expected a text, or none for the built-in one";
        return Err(RunError::option("prompt", "blank", rule));
    }
    if sections.iter().any(Text::is_blank) {
        let rule = "expected a text, or no sections for the built-in ones";
        return Err(RunError::option("a section", "blank", rule));
    }
    Ok(())
}

/// Returns the asides, each after the line that introduces it: the instructions of the brief, these rules,
/// and the next prompt after the line `next`.
pub(super) fn asides(View { thread, brief }: &View, rules: &str, next: &str) -> String {
    let counter = thread.counter();
    let asides = [
        (
            FOCUS,
            brief
                .reason
                .instructions()
                .map(|instructions| clip(instructions, ASIDE_TOKENS, counter)),
        ),
        (RULES, Some(rules.trim_end().to_owned()).filter(|rules| !rules.is_empty())),
        (next, brief.next_text().map(|text| clip(&text, ASIDE_TOKENS, counter))),
    ];
    let present = asides.into_iter().filter_map(|(line, text)| Some((line, text?)));
    present.map(|(line, text)| format!("\n\n{line}\n{text}")).collect()
}

/// Replaces each `{{name}}` of a template by its value. Values are not searched for names.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = template.trim_end();
    while let Some((before, tail)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = tail.split_once("}}") else { break };
        let value = values.iter().find(|(key, _)| *key == name);
        debug_assert!(value.is_some(), "the template names {name}, which has no value");
        filled.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// Encloses a text in tags that do not occur in it.
pub(super) fn tagged(name: &str, text: &str) -> String {
    let tag = free_tag(name, text);
    let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("<{tag}>\n{text}{line_break}</{tag}>")
}

/// Returns the name, with a number if the text holds its closing tag. One pass collects all used
/// numbers, so the time stays linear in a text full of tags.
fn free_tag(name: &str, text: &str) -> String {
    let closing = format!("</{name}");
    let used: HashSet<&str> = text
        .match_indices(&closing)
        .filter_map(|(at, found)| text.get(at + found.len()..))
        .map(|rest| rest.split(['>', '<', '\n']).next().unwrap_or_default())
        .collect();
    if used.is_empty() {
        return name.to_owned();
    }
    let mut number: usize = 2;
    while used.contains(format!("-{number}").as_str()) {
        number += 1;
    }
    format!("{name}-{number}")
}
