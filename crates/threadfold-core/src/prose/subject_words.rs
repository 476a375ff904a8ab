//! Words that say nothing about the subject of a statement, in a few languages.

use super::demand_words::spoken_words;

/// Words of grammar.
pub(super) const STOPS: &str = " a an the this that these those my your our their his her its it i we you they \
    he she me us them of in on at to for from by with as into onto over under up out off and or but so if then \
    than when while be been being have has had do does did may can could will would shall should must need \
    needs let use uses used using want wants wanted user user's users please just also only any all every each \
    no not never always here there what which who how why where very more most some such same other current currently latest still yet working \
    der die das den dem des ein eine einen einem einer eines und oder aber ich wir ihr sie er es mein unser f\u{fc}r \
    mit von zu zum zur im am auf aus bei nach \u{fc}ber unter bitte nur alle jede jeder muss m\u{fc}ssen soll wenn \
    el la los las un una unos unas y o pero de del en con por para al a que mi su nuestro se lo le les no si \
    todo todos toda todas cada solo debe deben cuando favor usa usar ";

/// Words that say that something is so.
pub(super) const COPULAS: &str = " is are was were be equals means ist sind war bleibt lautet es son est\u{e1} est\u{e1}n era ser \
    \u{662f} \u{4e3a} \u{53e3}\u{662f} est sont \u{e8} sono ";

/// Words that say that something changed.
pub(super) const CHANGES: &str = " now new changed changes moved moves updated update switched renamed instead actually \
    correction jetzt neu neue neuer neues nun ge\u{e4}ndert statt stattdessen ahora nuevo nueva cambi\u{f3} cambiado \
    \u{73b0}\u{5728} \u{6539}\u{4e3a} \u{6539}\u{6210} ";

/// Words that forbid.
pub(super) const NEGATIONS: &str =
    " never not no don't dont without nie niemals nicht kein keine keinen nunca no jam\u{e1}s ";

/// Words that demand, in languages other than English.
const DEMANDS: &str = " nie niemals immer stets nur jedem jeder jedes jede kein keine keinen bitte muss m\u{fc}ssen \
    soll sollen darf d\u{fc}rfen statt bevor wenn ohne nicht nunca jam\u{e1}s siempre s\u{f3}lo solo cada debe deben \
    prohibido obligatorio antes cuando ninguna ning\u{fa}n jamais toujours chaque seulement mai sempre ogni ";

/// Parts of demands in languages without spaces between words.
const UNSPACED_DEMANDS: [&str; 14] = [
    "\u{4e0d}\u{8981}",
    "\u{4e0d}\u{5f97}",
    "\u{4e0d}\u{80fd}",
    "\u{4e0d}\u{8bb8}",
    "\u{522b}",
    "\u{5fc5}\u{987b}",
    "\u{603b}\u{662f}",
    "\u{59cb}\u{7ec8}",
    "\u{6bcf}\u{6b21}",
    "\u{53ea}",
    "\u{8bf7}",
    "\u{7981}\u{6b62}",
    "\u{4e4b}\u{524d}",
    "\u{5148}",
];

/// Whether a statement has a word that demands something in a language other than English. It only
/// raises what the user typed above other typed text, so a wrong answer loses nothing.
pub(crate) fn asks_in_any_language(statement: &str) -> bool {
    if UNSPACED_DEMANDS.iter().any(|part| statement.contains(part)) {
        return true;
    }
    let mut words = spoken_words(statement).take(80);
    words.any(|word| is_listed_word(DEMANDS, &word.to_lowercase()))
}

/// Whether a list of words between spaces contains a word.
pub(super) fn is_listed_word(list: &str, word: &str) -> bool {
    !word.is_empty()
        && list.match_indices(word).any(|(at, word)| {
            let before = list.get(..at).is_some_and(|before| before.ends_with(' '));
            let after = list.get(at + word.len()..).is_some_and(|after| after.starts_with(' '));
            before && after
        })
}
