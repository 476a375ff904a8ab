//! Arbitrary language: English made of word classes, and other scripts.
//!
//! The closed classes are complete, as in a grammar; the words of the open classes are made of
//! syllables. So the texts have little in common with the words that the crate searches for.

use proptest::{collection::vec, prelude::*, sample::select};

use super::odd::{PAIRS, SCRIPTS};

const MODALS: &str = "can, could, dare, may, might, must, need, ought to, shall, should, used to, will, would, \
    had better, cannot, can't, couldn't, mayn't, mightn't, mustn't, needn't, oughtn't, \
    shan't, shouldn't, won't, wouldn\u{2019}t";
const AUXILIARIES: &str = "am, are, be, been, being, did, do, does, had, has, have, is, was, were, don't, doesn't, \
    didn\u{2019}t, isn't, aren't, ain't";
const PRONOUNS: &str = "I, you, he, she, it, we, they, me, him, them, us, one, this, that, these, those, \
    somebody, nothing, everyone, what, who, which, whoever";
const DETERMINERS: &str = "a, an, the, my, your, its, our, their, some, any, no, every, each, all, both, either, \
    neither, few, several, such, half, most";
const PREPOSITIONS: &str = "about, above, after, against, at, before, behind, by, despite, during, except, for, \
    from, in, instead of, into, like, of, off, on, over, than, through, till, to, under, \
    unlike, until, upon, with, within, without";
const CONJUNCTIONS: &str = "and, but, or, nor, so, yet, for, although, as, because, if, lest, once, rather than, \
    since, that, though, unless, when, whereas, while";
const ADVERBS: &str = "again, almost, also, always, anyway, even, ever, hardly, here, however, just, never, \
    not, now, often, only, perhaps, please, quite, seldom, sometimes, soon, still, then, \
    there, too, twice, very, yesterday";
const INTERJECTIONS: &str = "ah, hello, hm, no, oh, ok, okay, sorry, thanks, well, wow, yes";
const ABBREVIATIONS: &str = "a.k.a., approx., cf., Dr., e.g., et al., etc., fig., i.e., Mr., no., p.m., resp., St., \
    U.S., vs., w.r.t.";
const ENDS: &[&str] =
    &[".", "!", "?", "...", "?!", ":", ";", ",", " -", "\u{2014}", "\u{2026}", ""];
const MARKS: &[&str] = &[
    "- ",
    "* ",
    "+ ",
    "\u{2022} ",
    "1. ",
    "2) ",
    "(3) ",
    "a. ",
    "- [ ] ",
    "- [x] ",
    "> ",
    ">> ",
    "# ",
    "    ",
    "\t",
    "| ",
];
const FENCES: &[&str] = &["```", "```sh", "~~~", "````rust", "---", "***"];

/// One of the words of a class.
fn of(class: &'static str) -> impl Strategy<Value = &'static str> {
    select(class.split(", ").collect::<Vec<_>>())
}

/// A noun, a verb or an adjective: any word that sounds like one.
const WORD: &str = "([bdfgklmnprstvz]{1,2}[aeiou]{1,2}){1,3}(s|ed|ing|ly|er|ness)?";

/// A path, a name, a number.
const THING: &str = "[a-z]{1,5}(/[a-z]{1,5}){0,2}\\.[a-z]{1,4}|[a-z]{1,4}_[a-z]{1,4}|\
    v?[0-9]{1,3}(\\.[0-9]{1,2}){0,3}( ?ms|%)?";

fn phrase() -> impl Strategy<Value = String> {
    let closed = [
        MODALS,
        AUXILIARIES,
        PRONOUNS,
        DETERMINERS,
        PREPOSITIONS,
        CONJUNCTIONS,
        ADVERBS,
        INTERJECTIONS,
        ABBREVIATIONS,
    ];
    let closed = select(closed.to_vec()).prop_flat_map(of).prop_map(str::to_owned);
    let clause = (of(PRONOUNS), of(MODALS), of(ADVERBS), WORD, of(DETERMINERS), WORD);
    let clause = clause.prop_map(|(who, modal, how, verb, which, what)| {
        format!("{who} {modal} {how} {verb} {which} {what}")
    });
    let order = (of(AUXILIARIES), of(ADVERBS), WORD, of(PREPOSITIONS), WORD);
    let order =
        order.prop_map(|(aux, how, verb, to, what)| format!("{aux} {how} {verb} {to} {what}"));
    let question = (of(MODALS), of(PRONOUNS), WORD);
    let question = question.prop_map(|(modal, who, verb)| format!("{modal} {who} {verb}"));
    let other = select(SCRIPTS).prop_map(str::to_owned);
    prop_oneof![4 => closed, 3 => WORD, 2 => clause, 1 => order, 1 => question, 1 => THING, 1 => other]
}

fn sentence() -> impl Strategy<Value = String> {
    let parts = vec((phrase(), select(&["", ",", ";", " -", ":"][..])), 0..6);
    (parts, select(ENDS), any::<bool>()).prop_map(|(parts, end, large)| {
        let parts: Vec<String> = parts.into_iter().map(|(part, sign)| part + sign).collect();
        let text = parts.join(" ");
        let first =
            text.chars().next().filter(|_| large).map(|first| first.to_uppercase().to_string());
        let rest = text.chars().skip(usize::from(first.is_some()));
        first.unwrap_or_default() + &rest.collect::<String>() + end
    })
}

fn line() -> impl Strategy<Value = String> {
    let quoted = (select(PAIRS), sentence(), sentence());
    let quoted =
        quoted.prop_map(|((open, close), one, other)| format!("{open}{one}{close} {other}"));
    let nested = (select(PAIRS), select(PAIRS), sentence());
    let nested = nested
        .prop_map(|(one, other, text)| format!("{}{}{text}{}{}", one.0, other.0, other.1, one.1));
    let item = (select(MARKS), sentence()).prop_map(|(mark, text)| format!("{mark}{text}"));
    let prose = vec(sentence(), 1..4).prop_map(|all| all.join(" "));
    let fence = select(FENCES).prop_map(str::to_owned);
    prop_oneof![4 => prose, 1 => quoted, 1 => nested, 2 => item, 1 => fence]
}

/// A text of some lines.
pub(crate) fn text() -> impl Strategy<Value = String> {
    (vec(line(), 1..8), select(&["\n", "\n\n", " ", "\r\n"][..]))
        .prop_map(|(lines, gap)| lines.join(gap))
}
