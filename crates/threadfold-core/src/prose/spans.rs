//! The facts that a text states: what they are, who says them, and in which words.
//!
//! Nothing else in the crate decides what a path, a demand, a command or an error is. An audit looks
//! for these facts, a digest lists them, and so one cannot keep what the other does not know.

use std::borrow::Cow;

use super::{
    chunk::Trust,
    class::FactClass,
    command, demand, failure, link, number,
    passage::{Kind, Speaker},
    path, quote,
    scan::one_line,
    section,
    task::tasks,
    words::words,
};
use crate::message::steps;

/// A fact in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    pub class: FactClass,
    /// Its words as they stand; a demand is on one line, and so is `HTTP 404`.
    pub text: &'a str,
    pub(crate) speaker: Speaker,
    /// It is a task that is done.
    pub(crate) is_done: bool,
}

/// Passes on every fact in a text that somebody says as something.
pub fn spans(speaker: Speaker, kind: Kind, text: &str, tell: &mut dyn FnMut(Span<'_>)) {
    let mut note = |class: FactClass, text: &str| {
        let looks = class == FactClass::Command && command::only_looks(text);
        let speaker = if looks { Speaker::Tool } else { speaker };
        tell(Span { class, text, speaker, is_done: false });
    };
    match kind {
        Kind::Said => said(speaker, text, &mut note),
        Kind::Output => output(text, &mut note),
        Kind::Value => words(text, Trust::Prose, &mut note),
        Kind::Path => path::named(text, &mut note),
        Kind::Command => {
            command::given(text, &mut note);
            words(text, Trust::Little, &mut note);
        }
        Kind::Summary => said(Speaker::Assistant, text, &mut note),
        Kind::Task { done } => tell(task(speaker, text, done)),
        Kind::Mark => {}
    }
    if kind == Kind::Summary {
        for text in section::constraints(text) {
            let (class, speaker) = (FactClass::Constraint, Speaker::User);
            tell(Span { class, text, speaker, is_done: false });
        }
    }
    if matches!(kind, Kind::Said | Kind::Output | Kind::Summary) {
        for found in tasks(text) {
            tell(task(speaker, found.text, found.done));
        }
    }
}

fn task(speaker: Speaker, text: &str, is_done: bool) -> Span<'_> {
    Span { class: FactClass::Task, text, speaker, is_done }
}

fn said(speaker: Speaker, text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    words(text, Trust::Prose, note);
    number::numbers(text, note);
    command::commands(text, note);
    failure::failures(text, note);
    quote::quotes(text, note);
    checkpoints(text, note);
    if speaker == Speaker::User {
        demand::demands(text, note);
    }
}

/// Quoted texts are left out: in code and data everything is quoted.
fn output(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    words(text, Trust::Little, note);
    number::numbers(text, note);
    failure::failures(text, note);
}

/// `checkpoint a1b2c3`, `<checkpoint:a1b2c3>`.
fn checkpoints(text: &str, note: &mut dyn FnMut(FactClass, &str)) {
    const WORD: &str = "heckpoint";
    // `contains` is many times faster than `match_indices`.
    let named = steps::through(text).contains(WORD).then_some(text);
    for (at, word) in named.iter().flat_map(|text| text.match_indices(WORD)) {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let name = rest.trim_start_matches([' ', ':', '`', '"']);
        let name = name.get(..6).filter(|_| rest.len() - name.len() < 4);
        let ends = |c: char| !c.is_alphanumeric();
        let whole = rest.len() - rest.trim_start_matches([' ', ':', '`', '"']).len() + 6;
        let next = rest.get(whole..).and_then(|rest| rest.chars().next());
        let told = name.filter(|name| name.bytes().any(|b| b.is_ascii_digit()));
        if let Some(name) = told.filter(|name| {
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && next.is_none_or(ends)
        }) {
            note(FactClass::Checkpoint, name);
        }
    }
}

/// A fact as it is compared with others of its class.
pub fn key(class: FactClass, text: &str) -> Cow<'_, str> {
    match class {
        FactClass::Path => path::key(text),
        FactClass::Url => link::key(text).into(),
        FactClass::Version => text.trim_start_matches(['v', 'V']).into(),
        FactClass::Number if text.contains(char::is_whitespace) => {
            text.split_whitespace().collect()
        }
        FactClass::Number => text.into(),
        FactClass::Identifier | FactClass::Quote | FactClass::Checkpoint | FactClass::Command => {
            one_line(text)
        }
        FactClass::Constraint | FactClass::Task | FactClass::Error | FactClass::Hash => {
            one_line(text).to_lowercase().replace('\u{2019}', "'").into()
        }
    }
}
