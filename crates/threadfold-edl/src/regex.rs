//! Compiled regular expressions: their flags, their size, and how far a search must read.

use std::{fmt, ops::Range};

use regex_automata::{
    Anchored, Input,
    meta::Regex as Engine,
    nfa::thompson::WhichCaptures,
    util::syntax::{self, Config},
};
use regex_syntax::hir::{Class, Hir, HirKind};

/// The working memory of a search.
pub(crate) use regex_automata::meta::Cache;

use super::{
    javascript::{Invalid, translate},
    lookahead::Lookahead,
    text::shorten,
};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    engine: Engine,
    /// The expression as messages quote it.
    shown: String,
    is_sticky: bool,
    lookahead: Lookahead,
}

impl Regex {
    /// Compiles a pattern into at most `limit` bytes.
    pub(crate) fn new(source: &str, flags: &str, limit: usize) -> Result<Self, Invalid> {
        if let Some(flag) = repeated(flags) {
            return Err((source.len() + 1, format!("flag `{flag}` is given twice")));
        }
        let parsed = parse(source, flags)?;
        let limits =
            Engine::config().nfa_size_limit(Some(limit)).which_captures(WhichCaptures::Implicit);
        let built = Engine::builder().configure(limits).build_from_hir(&parsed);
        let engine = built.map_err(|error| match error.size_limit() {
            Some(limit) => {
                (0, format!("it needs more than the {limit} bytes that an expression may take"))
            }
            None => (0, last_line(&error.to_string())),
        })?;
        let shown = format!("/{}/{flags}", shorten(source));
        Ok(Self {
            engine,
            shown,
            is_sticky: flags.contains('y'),
            lookahead: Lookahead::of(&parsed),
        })
    }

    /// How much text after a match a search may read.
    pub(crate) fn lookahead(&self) -> Lookahead {
        self.lookahead
    }

    /// Returns the memory that the compiled expression takes.
    pub(crate) fn size(&self) -> usize {
        self.engine.memory_usage()
    }

    /// Returns the working memory of a search. A script has many expressions and searches with one
    /// at a time, so the expressions do not keep it.
    pub(crate) fn cache(&self) -> Cache {
        self.engine.create_cache()
    }

    /// Returns the first match within a span. `^`, `$` and `\b` see the text around the span.
    pub(crate) fn find(
        &self,
        cache: &mut Cache,
        text: &str,
        span: Range<usize>,
    ) -> Option<Range<usize>> {
        let anchored = if self.is_sticky { Anchored::Yes } else { Anchored::No };
        let input = Input::new(text).span(span).anchored(anchored);
        self.engine.search_with(cache, &input).map(|found| found.range())
    }
}

impl fmt::Display for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

fn parse(source: &str, flags: &str) -> Result<Hir, Invalid> {
    let [i, m, s, u] = ['i', 'm', 's', 'u'].map(|flag| flags.contains(flag));
    let config = Config::new().case_insensitive(i).multi_line(m).dot_matches_new_line(s).crlf(true);
    let translated = translate(source, u)?;
    syntax::parse_with(&translated, &config).map_err(|error| (0, last_line(&error.to_string())))
}

impl Lookahead {
    fn of(expression: &Hir) -> Self {
        match bytes_read_past(expression) {
            // An assertion reads one character more, which has up to four bytes.
            Some(bytes) => Self::Bytes(bytes.saturating_add(4)),
            None if may_match_line_feed(expression) => Self::RestOfText,
            None => Self::RestOfLine,
        }
    }
}

/// Returns how many bytes a search may read past the end of a match, if there is a bound.
///
/// That is at most the length of the longest match. There is also a bound if the only unbounded
/// repetition is at the end, as in `\n\n+`: such an expression matches after every round, so a
/// search reads at most the text before the repetition, its required rounds, and one more round.
fn bytes_read_past(expression: &Hir) -> Option<usize> {
    if let HirKind::Repetition(repetition) = expression.kind()
        && repetition.max.is_none()
    {
        let rounds = usize::try_from(repetition.min).ok()?.saturating_add(1);
        return Some(longest_match(&repetition.sub)?.saturating_mul(rounds));
    }
    let HirKind::Concat(parts) = expression.kind() else { return longest_match(expression) };
    let (last, before) = parts.split_last()?;
    before.iter().try_fold(bytes_read_past(last)?, |sum, part| {
        Some(sum.saturating_add(longest_match(part)?))
    })
}

/// Returns the bytes of the longest match, if there is a bound.
fn longest_match(expression: &Hir) -> Option<usize> {
    expression.properties().maximum_len()
}

fn may_match_line_feed(expression: &Hir) -> bool {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&'\n'))
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&b'\n'))
        }
        kind @ (HirKind::Repetition(_)
        | HirKind::Capture(_)
        | HirKind::Concat(_)
        | HirKind::Alternation(_)) => kind.subs().iter().any(may_match_line_feed),
    }
}

fn repeated(flags: &str) -> Option<char> {
    let mut seen = flags.char_indices();
    seen.find_map(|(at, flag)| flags.get(..at)?.contains(flag).then_some(flag))
}

/// Returns the message of an engine's error, without the lines above it that show the pattern.
fn last_line(message: &str) -> String {
    let last = message.lines().next_back().unwrap_or(message);
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
    fn flags_have_the_same_meaning_as_in_javascript() {
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
        assert_eq!(shown.to_string(), r"/a\s*/gm");
    }

    #[test]
    fn the_lookahead_is_the_shortest_known_bound() {
        assert_eq!(regex("ab{2}", "").lookahead, Lookahead::Bytes(7));
        assert_eq!(regex("ab{2,}", "").lookahead, Lookahead::Bytes(8));
        assert_eq!(regex("^a.*$", "m").lookahead, Lookahead::RestOfLine);
        assert_eq!(regex(r"a\s*b", "").lookahead, Lookahead::RestOfText);
    }

    #[test]
    fn patterns_that_cannot_match_a_line_feed_are_recognized() {
        let may = |pattern, flags| may_match_line_feed(&parse(pattern, flags).expect("a pattern"));
        for pattern in [
            r"^# .*$",
            r"\w+\S",
            "[a-z]*",
            r"[^\n]*",
            r"[^\s]",
            "(?im:.)(?<s>a)",
            "[]",
            "[a-]",
            "[ -~]",
            r"[^\t-\r]",
            r"[^\D]",
        ] {
            assert!(!may(pattern, ""), "{pattern}");
        }
        for pattern in [
            r"a\n",
            r"\s",
            "[^a]",
            r"\D",
            r"\W",
            r"[\x00-z]",
            "(?s:.)",
            "(?s).",
            r"\u000a",
            "[^]",
            "[^a-a]",
            r"[\t-\r]",
            r"[\n]",
            r"[\nab]",
            r"[\b-\n]",
        ] {
            assert!(may(pattern, ""), "{pattern}");
        }
        assert!(!may(r"\d\w\S\b\B\p{L}", "u") && may(r"\D", "u") && may(r"\W", "u"));
        assert!(!may("a.", "") && may("a.", "s"));
    }

    #[test]
    fn compile_errors_have_one_line() {
        let error =
            |source, flags| Regex::new(source, flags, 10_000).map(|_| ()).map_err(|it| it.1);
        let message = |message: &str| Err(message.to_owned());
        assert_eq!(error("(a", ""), message("unclosed group"));
        assert_eq!(error("*", ""), message("repetition operator missing expression"));
        assert_eq!(error("a", "gig"), message("flag `g` is given twice"));
        assert_eq!(
            error("(a{999}){999}", ""),
            message("it needs more than the 10000 bytes that an expression may take")
        );
    }
}
