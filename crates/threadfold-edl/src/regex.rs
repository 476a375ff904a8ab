//! Regular expressions of scripts: flags, compilation, and how far a search must look.

use std::{fmt, ops::Range};

use regex_automata::{
    Anchored, Input,
    meta::{Cache, Regex as Engine},
    util::syntax::{self, Config},
};

use super::{
    pattern_error::RegexError,
    translate::{Misplaced, translate},
    words::{QUOTE_CHARACTERS, abridge},
};

/// A compiled regular expression.
#[derive(Clone)]
pub(crate) struct Regex {
    engine: Engine,
    source: String,
    flags: String,
    sticky: bool,
    reach_beyond: Reach,
}

/// How much text after a match can decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// At most this many bytes.
    Bytes(usize),
    /// The rest of the line.
    Line,
    /// Anything up to the end of the text.
    Text,
}

impl Regex {
    /// Compiles a pattern. An error comes with the byte of the pattern where it was found.
    pub(crate) fn new(source: &str, flags: &str, limit: usize) -> Result<Self, Misplaced> {
        if let Some(flag) = repeated(flags) {
            return Err((source.len() + 1, RegexError::RepeatedFlag { flag }));
        }
        let has = |flag| flags.contains(flag);
        let translation = translate(source, has('u'), has('s'))?;
        let config = Config::new()
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .crlf(true);
        let parsed = syntax::parse_with(&translation.source, &config)
            .map_err(|error| (0, RegexError::Syntax { message: last_line(&error.to_string()) }))?;
        let limits = Engine::config()
            .nfa_size_limit(Some(limit))
            .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit);
        let engine =
            Engine::builder().configure(limits).build_from_hir(&parsed).map_err(|error| {
                let message = last_line(&error.to_string());
                let too_large = error.size_limit().map(|limit| RegexError::TooLarge { limit });
                (0, too_large.unwrap_or(RegexError::Syntax { message }))
            })?;
        // An assertion looks at one character on either side, and a character has up to four bytes.
        let longest = parsed.properties().maximum_len().map(|bytes| bytes.saturating_add(4));
        // If the only repetition without bound comes last, as in `\n\n+`, the expression matches
        // after every round of it. Less is read in vain than what comes before it and its first
        // rounds.
        let whole = std::slice::from_ref(&parsed);
        let parts = if parsed.kind().subs().len() > 1 { parsed.kind().subs() } else { whole };
        let beyond = parts.split_last().and_then(|(last, before)| {
            let [round] = last.kind().subs() else { return None };
            let (round, least) = (round.properties(), last.properties().minimum_len()?);
            let rounds = least.checked_div(round.minimum_len()?)?.saturating_add(1);
            let repeated = round.maximum_len()?.saturating_mul(rounds).saturating_add(4);
            before.iter().try_fold(repeated, |sum, part| {
                Some(sum.saturating_add(part.properties().maximum_len()?))
            })
        });
        let reach_beyond = match longest.or(beyond) {
            Some(bytes) => Reach::Bytes(bytes),
            None if translation.within_line => Reach::Line,
            None => Reach::Text,
        };
        let (source, flags) = (source.to_owned(), flags.to_owned());
        Ok(Self { engine, source, sticky: flags.contains('y'), flags, reach_beyond })
    }

    /// How much text beyond a match may be read before it is known as one.
    pub(crate) fn reach_beyond(&self) -> Reach {
        self.reach_beyond
    }

    /// How much memory the compiled expression takes.
    pub(crate) fn size(&self) -> usize {
        self.engine.memory_usage()
    }

    /// Returns memory for searches. It is not kept in the expression, where it would add up over
    /// the expressions of a script.
    pub(crate) fn cache(&self) -> Cache {
        self.engine.create_cache()
    }

    /// Returns the first match within a span of a text, all of which it sees.
    pub(crate) fn find(
        &self,
        cache: &mut Cache,
        text: &str,
        span: Range<usize>,
    ) -> Option<Range<usize>> {
        let anchored = if self.sticky { Anchored::Yes } else { Anchored::No };
        let input = Input::new(text).span(span).anchored(anchored);
        self.engine.search_with(cache, &input).map(|found| found.range())
    }
}

impl fmt::Display for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "/{}/{}", abridge(&self.source, QUOTE_CHARACTERS), self.flags)
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn repeated(flags: &str) -> Option<char> {
    let mut seen = flags.char_indices();
    seen.find_map(|(at, flag)| flags.get(..at)?.contains(flag).then_some(flag))
}

/// The engine draws the pattern above its message; only the message fits into ours.
fn last_line(message: &str) -> String {
    let last = message.lines().next_back().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(source: &str, flags: &str) -> Regex {
        Regex::new(source, flags, 1 << 20).expect("a pattern that compiles")
    }

    fn find_in(source: &str, flags: &str, text: &str, span: Range<usize>) -> Option<Range<usize>> {
        let regex = regex(source, flags);
        regex.find(&mut regex.cache(), text, span)
    }

    fn find(source: &str, flags: &str, text: &str) -> Option<Range<usize>> {
        find_in(source, flags, text, 0..text.len())
    }

    #[test]
    fn assertions_see_the_text_around_the_span() {
        assert_eq!(find_in("^b", "", "ab", 1..2), None);
        assert_eq!(find_in(r"\bb", "", "ab", 1..2), None);
        assert_eq!(find_in("a$", "", "ab", 0..1), None);
        assert_eq!(find_in("^b", "m", "a\nb", 2..3), Some(2..3));
    }

    #[test]
    fn flags_mean_what_javascript_means() {
        assert_eq!(find("B", "gi", "ab"), Some(1..2));
        assert_eq!(find("a.b", "", "a\nb"), None);
        assert_eq!(find("a.b", "s", "a\nb"), Some(0..3));
        assert_eq!(find("b", "y", "ab"), None);
        assert_eq!(find(r"\w+", "", "é_1"), Some(2..4));
        assert_eq!(find(r"\w+", "u", "é_1"), Some(0..4));
    }

    #[test]
    fn a_line_ends_before_its_carriage_return() {
        assert_eq!(find("^b.*$", "m", "a\r\nbc\r\n"), Some(3..5));
    }

    #[test]
    fn an_expression_is_shown_as_it_was_written() {
        let shown = regex(r"a\s*", "gm");
        assert_eq!([format!("{shown}"), format!("{shown:?}")], [r"/a\s*/gm"; 2]);
    }

    #[test]
    fn the_reach_is_as_short_as_can_be_known() {
        assert_eq!(regex("ab{2}", "").reach_beyond(), Reach::Bytes(7));
        assert_eq!(regex("ab{2,}", "").reach_beyond(), Reach::Bytes(8));
        assert_eq!(regex("^a.*$", "m").reach_beyond(), Reach::Line);
        assert_eq!(regex(r"a\s*b", "").reach_beyond(), Reach::Text);
    }

    #[test]
    fn what_cannot_be_compiled_is_an_error_of_one_line() {
        let error =
            |source, flags| Regex::new(source, flags, 10_000).map(|_| ()).map_err(|it| it.1);
        let syntax = |message: &str| RegexError::Syntax { message: message.to_owned() };
        assert_eq!(error("(a", ""), Err(syntax("unclosed group")));
        assert_eq!(error("*", ""), Err(syntax("repetition operator missing expression")));
        assert_eq!(error("a", "gig"), Err(RegexError::RepeatedFlag { flag: 'g' }));
        assert_eq!(error("(a{999}){999}", ""), Err(RegexError::TooLarge { limit: 10_000 }));
    }
}
