//! The facts that a text states, each with its class, its speaker and its words.
//!
//! Only this module decides what a path, a command or an error is. The audit looks for
//! these facts and the digest lists them, so the two cannot disagree.

use std::borrow::Cow;

use super::{
    chunk::Trust,
    class::{FactClass, Note, Speaker},
    command, failure, link, number,
    passage::Kind,
    path, quote,
    task::tasks,
    word_facts::{word_facts, words_and_codes},
    word_kinds::one_line,
};

/// A fact in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    pub class: FactClass,
    /// The words as written. Only codes such as `HTTP 404` are joined to one line.
    pub text: &'a str,
    pub(crate) speaker: Speaker,
    /// Whether this is a task that is done.
    pub(crate) is_done: bool,
}

/// Calls `visit` with every fact in a text of this speaker and kind.
pub fn spans(speaker: Speaker, kind: Kind, text: &str, visit: &mut dyn FnMut(Span<'_>)) {
    let mut note = |class: FactClass, text: &str| {
        let reads = class == FactClass::Command && command::only_reads(text);
        let speaker = if reads { Speaker::Tool } else { speaker };
        visit(Span { class, text, speaker, is_done: false });
    };
    match kind {
        Kind::Said | Kind::Summary => speech(text, &mut note),
        Kind::Output => output(text, &mut note),
        Kind::Value => word_facts(text, Trust::Prose, &mut note),
        Kind::Path => path::path_value(text, &mut note),
        Kind::Command => {
            command::command_argument(text, &mut note);
            word_facts(text, Trust::Little, &mut note);
        }
        Kind::Task { done } => visit(task(speaker, text, done)),
        Kind::Mark => {}
    }
    if matches!(kind, Kind::Said | Kind::Output | Kind::Summary) {
        for (text, is_done) in tasks(text) {
            visit(task(speaker, text, is_done));
        }
    }
}

fn task(speaker: Speaker, text: &str, is_done: bool) -> Span<'_> {
    Span { class: FactClass::Task, text, speaker, is_done }
}

fn speech(text: &str, note: Note<'_>) {
    words_and_codes(text, Trust::Prose, note);
    number::numbers(text, note);
    command::commands(text, note);
    failure::failures(text, note);
    quote::quotes(text, note);
}

/// Notes the facts of tool output, without quotes, because code and data quote everything.
fn output(text: &str, note: Note<'_>) {
    words_and_codes(text, Trust::Little, note);
    number::numbers(text, note);
    failure::failures(text, note);
}

/// Returns the key of a fact: two facts of a class are the same if their keys are equal.
pub fn key(class: FactClass, text: &str) -> Cow<'_, str> {
    match class {
        FactClass::Path => path::key(text),
        FactClass::Url => link::key(text).into(),
        FactClass::Version => text.trim_start_matches(['v', 'V']).into(),
        FactClass::Number if text.contains(char::is_whitespace) => {
            text.split_whitespace().collect()
        }
        FactClass::Number => text.into(),
        FactClass::Identifier | FactClass::Quote | FactClass::Command => one_line(text),
        FactClass::Task | FactClass::Error | FactClass::Hash => {
            one_line(text).to_lowercase().replace('\u{2019}', "'").into()
        }
    }
}
