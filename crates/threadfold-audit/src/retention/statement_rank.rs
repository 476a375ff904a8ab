//! Ranks statements by importance. The rank only decides which statements are listed if there is not
//! room for all.

use crate::{
    ledger,
    prose::{
        Subject, asks_in_any_language, has_demand, has_wish, is_question, is_unspaced, label,
        sentences,
    },
};

/// The lowest rank, which a question or a routine request has.
pub(super) const LOWEST: u64 = 1;

/// The minimum rank of a statement with a mark of importance: it demands something, has a label or
/// gives a value.
pub(super) const EMPHASISED: u64 = 5;

/// Returns the importance of a statement.
pub(super) fn rank(text: &str, subject: &Subject, lost_label: bool, is_routine: bool) -> u64 {
    let is_rule = sentences(text).any(ledger::is_rule);
    let is_labelled = lost_label || label(text).is_some();
    let words = text.split_whitespace().count();
    let asks = sentences(text).all(is_question);
    let demands =
        has_demand(text) || asks_in_any_language(text) || sentences(text).any(ledger::takes_back);
    let wishes = !asks && has_wish(text);
    let forbids = subject.denies() && !asks && !subject.is_talk();
    let gives_value = subject.has_value() && !asks && !is_routine && !subject.is_order();
    let points = [
        (is_rule, 6),
        (!is_rule && !asks && !is_routine && demands, 3),
        (is_labelled, 4),
        (gives_value, 3),
        (!gives_value && (wishes || forbids) && !is_rule && !demands, 2),
        (subject.is_change() && (gives_value || demands || wishes), 1),
    ];
    let points: u64 = points.iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum();
    // A text of few words is often `yes` or `go on`. In scripts without spaces, words cannot be
    // counted.
    let says_little = asks || is_routine || (words < 4 && !text.contains(is_unspaced));
    let is_talk = points == 0 && subject.is_talk();
    let base = if says_little { LOWEST } else { 3 - u64::from(is_talk) };
    base + points
}
