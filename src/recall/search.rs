//! Ranking messages by the words of a query with BM25, in two stages: first stretches of the
//! thread, then the messages in them.
//!
//! A long message is searched in pieces, so that a match in long output does not rank below a short
//! message. Each text is read once, and only the words of the query are counted: an index of all
//! words would cost many times the time and memory of a search. [`Reading`] reads slice by slice,
//! so that a search of a long conversation does not block other work.
//!
//! Prose and code are split by the same rules: a name in code is found as a whole and by its parts.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::Range,
};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{
    passage::{border, piece_end},
    request::{RecallError, Result},
    tool::RECALL,
};
use crate::{
    log::Removed,
    message::{ContentBlock, Text, steps},
    prose::Shapes,
};

/// The maximum number of matches in one answer.
pub(super) const SHOWN: usize = 10;

/// The maximum number of different words of a query that are searched, which bounds the time of a
/// search.
const TERMS: usize = 64;

/// The maximum bytes of a piece.
const PIECE: usize = 4_000;

/// The bytes of a slice of a search: a few milliseconds of work.
const SLICE: usize = 256 * 1024;

/// A shorter message counts as this many bytes of a slice, because rendering takes time for any
/// message.
const LEAST: usize = 200;

/// The maximum bytes of an excerpt around the words.
const EXCERPT: usize = 600;

/// The words of a query.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The number of each word.
    numbers: HashMap<String, usize>,
    /// They exclude most words of a text before these are folded.
    shapes: Shapes,
}

/// A message that matches a query, and its best piece.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matched {
    pub(super) index: usize,
    pub(super) bytes: Range<usize>,
    score: f32,
}

impl Terms {
    pub(super) fn of(query: &str) -> Result<Self> {
        let found = query.len();
        if found > super::request::MAX_QUERY_BYTES {
            return Err(RecallError::QueryLength { found });
        }
        let mut terms = Self { numbers: HashMap::new(), shapes: Shapes::default() };
        let mut word = String::new();
        each_word(query, |found, _| {
            found.fold_to(&mut word);
            let number = terms.numbers.len();
            if number < TERMS && word.chars().any(char::is_alphanumeric) {
                terms.shapes.add(&word);
                terms.numbers.entry(word.clone()).or_insert(number);
            }
        });
        if terms.numbers.is_empty() { Err(RecallError::NoWords) } else { Ok(terms) }
    }

    /// Returns the number of a word, if the query has it. `buffer` is for its folded form.
    fn number(&self, found: Found<'_>, buffer: &mut String) -> Option<usize> {
        let Found { text, most } = found;
        // Folding turns only a first letter beyond ASCII into another.
        if text.starts_with(|first: char| first.is_ascii()) {
            let may_be = || !text.is_ascii() || self.shapes.has(text, text.len().min(most));
            if !self.shapes.begins(text) || !may_be() {
                return None;
            }
        }
        found.fold_to(buffer);
        self.numbers.get(buffer.as_str()).copied()
    }

    /// Returns the byte range of a piece in which most words of the query are close together.
    pub(super) fn excerpt(&self, text: &str, piece: Range<usize>) -> Range<usize> {
        let mut hits: Vec<(Range<usize>, usize)> = Vec::new();
        let mut buffer = String::new();
        each_word(text.get(piece.clone()).unwrap_or_default(), |found, range| {
            hits.extend(self.number(found, &mut buffer).map(|term| (range, term)));
        });
        let (start, end) = closest(&hits);
        let (start, end) = (piece.start + start, piece.start + end);
        let slack = EXCERPT.saturating_sub(end - start);
        let start = border(text, start.saturating_sub(slack / 3).max(piece.start));
        start..piece_end(text, start, EXCERPT).max(border(text, end.min(start + EXCERPT)))
    }

    fn count(&self, text: &str) -> Doc {
        let (mut doc, mut buffer) = (Doc::default(), String::new());
        each_word(text, |found, _| {
            doc.words += 1;
            if let Some(term) = self.number(found, &mut buffer) {
                *doc.counts.entry(term).or_default() += 1;
            }
        });
        doc
    }
}

/// Returns the numbers of messages that contain only calls of the recall tool or their results.
/// Such a message would rank above the message that it quotes.
pub(super) fn quoting(removed: &[Removed]) -> HashSet<u64> {
    let mut calls: HashSet<&Text> = HashSet::new();
    let mut quoting = HashSet::new();
    for removed in removed {
        let uses = removed.message.tool_uses().filter(|call| call.name == *RECALL);
        calls.extend(uses.map(|call| &call.id));
        let blocks = removed.message.content.iter().filter(|block| Removed::is_content(block));
        let mut blocks = blocks.peekable();
        if blocks.peek().is_some() && blocks.all(|block| quotes(block, &calls)) {
            quoting.insert(removed.number);
        }
    }
    quoting
}

/// Whether a block is a call of the recall tool, or the result of such a call.
fn quotes(block: &ContentBlock, calls: &HashSet<&Text>) -> bool {
    if let ContentBlock::ToolUse(call) = block {
        calls.contains(&call.id)
    } else if let ContentBlock::ToolResult(result) = block {
        calls.contains(&result.tool_use_id)
    } else {
        false
    }
}

/// The state of a search that reads its messages slice by slice.
///
/// A message is ranked by its own words and by those of its stretch, because the words of a
/// question often occur near the answer and not in it. Each further message of a stretch scores
/// less, so that the first results come from several stretches.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The index of the next message, or of the one in `open`.
    index: usize,
    /// A message that was read in part: its text, and the offset at which to continue.
    open: Option<(String, usize)>,
    pieces: Docs,
    stretches: Docs,
    /// The words of the stretch that is being read, and its bytes.
    stretch: (Doc, usize),
    hits: Vec<Hit>,
}

impl Reading {
    /// Reads the next slice, and returns whether there is more. `text` returns the text of each
    /// index below `count`, or `None` to skip it.
    pub(super) fn read(
        &mut self,
        terms: &Terms,
        count: usize,
        text: impl Fn(usize) -> Option<String>,
    ) -> bool {
        let mut left = SLICE;
        while self.index < count && left > 0 {
            let next = self.open.take().or_else(|| text(self.index).map(|text| (text, 0)));
            let (text, start) = next.unwrap_or_default();
            let end = piece_end(&text, start, PIECE);
            left = left.saturating_sub((end - start).max(LEAST));
            if start < end {
                self.add(terms, &text, start..end);
            }
            match end < text.len() {
                true => self.open = Some((text, end)),
                false => self.index += 1,
            }
        }
        self.index < count
    }

    fn add(&mut self, terms: &Terms, text: &str, bytes: Range<usize>) {
        let doc = terms.count(text.get(bytes.clone()).unwrap_or_default());
        self.stretch.1 += bytes.len();
        if self.stretch.1 > PIECE {
            self.stretches.add(std::mem::take(&mut self.stretch.0));
            self.stretch.1 = bytes.len();
        }
        self.stretch.0.join(&doc);
        if !doc.counts.is_empty() {
            let (index, piece, stretch) = (self.index, self.pieces.all, self.stretches.all);
            self.hits.push(Hit { index, bytes, piece, stretch });
        }
        self.pieces.add(doc);
    }

    /// Returns the messages that contain any of the words, best first, the latest first among
    /// equals.
    pub(super) fn ranked(mut self, terms: &Terms) -> Vec<Matched> {
        self.stretches.add(self.stretch.0);
        best(&self.hits, &self.pieces.scores(terms), &self.stretches.scores(terms))
    }
}

/// A piece of a message that contains words of the query.
#[derive(Debug)]
struct Hit {
    index: usize,
    bytes: Range<usize>,
    /// Its number among all pieces.
    piece: usize,
    /// The number of its stretch.
    stretch: usize,
}

/// The number of words in a text, and how often each word of the query occurs in it.
#[derive(Debug, Default)]
struct Doc {
    /// Its number among all texts that were read.
    number: usize,
    words: usize,
    counts: HashMap<usize, usize>,
}

impl Doc {
    fn join(&mut self, other: &Self) {
        self.words += other.words;
        for (term, count) in &other.counts {
            *self.counts.entry(*term).or_default() += count;
        }
    }

    /// Returns the BM25 score, given the rarity of each word of the query. Each repetition of a
    /// word adds less than the one before, and words in a longer text count less.
    fn score(&self, rarity: &[f32], average: f32) -> f32 {
        // The usual values for BM25.
        let (k1, b) = (1.2, 0.75);
        let long = 1.0 - b + b * real(self.words) / average.max(1.0);
        let mut score = 0.0;
        // Always add in the order of the words, because a sum of floats depends on the order.
        for (term, rarity) in rarity.iter().enumerate() {
            let count = real(self.counts.get(&term).copied().unwrap_or_default());
            score += rarity * count * (k1 + 1.0) / (count + k1 * long);
        }
        score
    }
}

/// Texts that are ranked against each other.
#[derive(Debug, Default)]
struct Docs {
    matching: Vec<Doc>,
    all: usize,
    words: usize,
}

impl Docs {
    fn add(&mut self, doc: Doc) {
        let number = self.all;
        self.all += 1;
        self.words += doc.words;
        if !doc.counts.is_empty() {
            self.matching.push(Doc { number, ..doc });
        }
    }

    /// Returns the score of each text with words of the query, by its number among all.
    fn scores(&self, terms: &Terms) -> HashMap<usize, f32> {
        let average = real(self.words) / real(self.all.max(1));
        let mut holding = vec![0; terms.numbers.len()];
        for term in self.matching.iter().flat_map(|doc| doc.counts.keys()) {
            if let Some(count) = holding.get_mut(*term) {
                *count += 1;
            }
        }
        let rarity = holding
            .into_iter()
            .map(|count: usize| (1.0 + (real(self.all - count) + 0.5) / (real(count) + 0.5)).ln());
        let rarity: Vec<f32> = rarity.collect();
        self.matching.iter().map(|doc| (doc.number, doc.score(&rarity, average))).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "weights need not be exact")]
fn real(count: usize) -> f32 {
    count as f32
}

/// Returns the best piece of each message, best first. In each stretch, the score of the second
/// message is halved, that of the third divided by three, and so on.
fn best(
    hits: &[Hit],
    pieces: &HashMap<usize, f32>,
    stretches: &HashMap<usize, f32>,
) -> Vec<Matched> {
    let mut best: HashMap<usize, (usize, Matched)> = HashMap::new();
    for Hit { index, bytes, piece, stretch } in hits {
        let scores = [pieces.get(piece), stretches.get(stretch)];
        let score = scores.into_iter().flatten().sum();
        let matched = Matched { index: *index, bytes: bytes.clone(), score };
        let (in_stretch, found) = best.entry(*index).or_insert_with(|| (*stretch, matched.clone()));
        let is_better = found.score < matched.score;
        if is_better || (found.score == matched.score && matched.bytes.start < found.bytes.start) {
            (*in_stretch, *found) = (*stretch, matched);
        }
    }
    let mut best: Vec<(usize, Matched)> = best.into_values().collect();
    best.sort_unstable_by(by_score);
    let mut taken: HashMap<usize, usize> = HashMap::new();
    for (stretch, matched) in &mut best {
        let before = taken.entry(*stretch).or_default();
        matched.score /= real(1 + *before);
        *before += 1;
    }
    best.sort_unstable_by(by_score);
    best.into_iter().map(|(_, matched)| matched).collect()
}

/// The best first, the latest first among equals.
fn by_score((_, one): &(usize, Matched), (_, other): &(usize, Matched)) -> Ordering {
    other.score.total_cmp(&one.score).then(other.index.cmp(&one.index))
}

/// Returns the range of at most [`EXCERPT`] bytes that has the largest number of different words.
fn closest(hits: &[(Range<usize>, usize)]) -> (usize, usize) {
    let (mut first, mut best, mut most) = (0, (0, 0), 0);
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for (range, term) in hits {
        *counts.entry(*term).or_default() += 1;
        while let Some((start, term)) = hits.get(first)
            && range.end.saturating_sub(start.start) > EXCERPT
        {
            if let Some(count) = counts.get_mut(term) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(term);
                }
            }
            first += 1;
        }
        let start = hits.get(first).map_or(range.start, |(start, _)| start.start);
        if counts.len() > most {
            (most, best) = (counts.len(), (start.min(range.start), range.end));
        }
    }
    best
}

/// The maximum bytes of a word that is indexed. Nobody types a longer word into a query.
const WORD: usize = 64;

/// The maximum bytes of a compound, such as a path, that is indexed.
const COMPOUND: usize = 256;

/// A word as it stands in a text.
#[derive(Clone, Copy, Debug)]
struct Found<'a> {
    text: &'a str,
    /// So many bytes of it count.
    most: usize,
}

impl Found<'_> {
    /// Puts the word into a buffer: in lower case, without accents, and cut.
    fn fold_to(self, buffer: &mut String) {
        buffer.clear();
        let Self { text, most } = self;
        let text = steps::through(text);
        if text.is_ascii() {
            buffer.push_str(text.get(..most).unwrap_or(text));
            buffer.make_ascii_lowercase();
            return;
        }
        let folded = text.nfkd().filter(|letter| !is_combining_mark(*letter));
        for letter in folded.flat_map(char::to_lowercase) {
            if buffer.len() >= most {
                break;
            }
            buffer.push(letter);
        }
    }
}

/// Calls a function with each word of a text and its byte range: the words, the parts of words such
/// as `parse_error`, and compounds such as paths and names in code.
fn each_word<'a>(text: &'a str, mut word: impl FnMut(Found<'a>, Range<usize>)) {
    let mut emit = |range: Range<usize>, most: usize| {
        if let Some(text) = text.get(range.clone()) {
            word(Found { text, most }, range);
        }
    };
    let mut at = 0;
    while let Some(start) = next_word(text, at) {
        let mut end = word_end(text, start);
        emit(start..end, WORD);
        parts(text, start..end, |part| emit(part, WORD));
        let mut count = 1;
        while let Some(next) = linked_word(text, end) {
            end = word_end(text, next);
            emit(next..end, WORD);
            parts(text, next..end, |part| emit(part, WORD));
            count += 1;
        }
        if count > 1 {
            emit(start..end, COMPOUND);
        }
        at = end;
    }
}

fn next_word(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    steps::up_to(rest, first(rest, is_letter)).map(|found| at + found)
}

/// The offset of the first character for which `is` is `true`. Texts are mostly ASCII, of which
/// each byte is a character.
fn first(text: &str, is: impl Fn(char) -> bool) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let (letter, len) = match byte.is_ascii() {
            true => (char::from(*byte), 1),
            false => text.get(at..)?.chars().next().map(|letter| (letter, letter.len_utf8()))?,
        };
        if is(letter) {
            return Some(at);
        }
        at += len;
    }
    None
}

fn is_letter(letter: char) -> bool {
    match letter.is_ascii() {
        true => letter.is_ascii_alphanumeric() || letter == '_',
        false => letter.is_alphanumeric(),
    }
}

/// Whether a character counts as a word, because its script puts no spaces between words.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn word_end(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    match rest.chars().next() {
        Some(first) if is_ideograph(first) => start + first.len_utf8(),
        _ => {
            // A combining accent may be a character of its own after its letter.
            let end = first(rest, |letter| match letter.is_ascii() {
                true => !is_letter(letter),
                false => is_ideograph(letter) || !(is_letter(letter) || is_combining_mark(letter)),
            });
            start + end.unwrap_or(rest.len())
        }
    }
}

/// Returns the start of the next word if a link such as `/` or `::` joins it to the word ending
/// here.
fn linked_word(text: &str, end: usize) -> Option<usize> {
    let link = match text.as_bytes().get(end..)? {
        [b'/' | b'\\' | b'.', ..] => 1,
        [b':', b':', ..] | [b'-', b'>', ..] => 2,
        [b'-', ..] => 1,
        _ => return None,
    };
    let next = end + link;
    text.get(next..)?.starts_with(is_letter).then_some(next)
}

/// Calls a function with the range of each part of a name in code: `parse_error`, `parseError` and
/// `HTTPServer` have two parts. It is not called for a word of one part.
fn parts(text: &str, word: Range<usize>, mut part: impl FnMut(Range<usize>)) {
    let Some(letters) = text.get(word.clone()) else { return };
    let joins = |(at, byte): (usize, u8)| {
        byte == b'_' || !byte.is_ascii() || (at > 0 && byte.is_ascii_uppercase())
    };
    if !letters.bytes().enumerate().any(joins) {
        return;
    }
    let (mut start, mut last) = (word.start, '_');
    for (offset, letter) in letters.char_indices() {
        let at = word.start + offset;
        let rest = letters.get(offset..).unwrap_or_default();
        if letter == '_' || begins_part(last, letter, rest) {
            if start < at {
                part(start..at);
            }
            start = at + if letter == '_' { 1 } else { 0 };
        }
        last = letter;
    }
    if word.start < start && start < word.end {
        part(start..word.end);
    }
}

/// Whether a letter is a capital that begins a part: after a lower-case letter, or as the last one
/// of several capitals. `rest` begins with it.
fn begins_part(last: char, letter: char, rest: &str) -> bool {
    letter.is_uppercase()
        && (last.is_lowercase()
            || (last.is_uppercase() && rest.chars().nth(1).is_some_and(char::is_lowercase)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::steps;

    /// Messages of a thousand bytes, of which every tenth has the word.
    fn text(index: usize) -> Option<String> {
        let word = if index.is_multiple_of(10) { "lighthouse" } else { "harbour" };
        Some(format!("{word} {}\n", "some more words ".repeat(62)))
    }

    /// Reads this many messages, and returns the slices, the steps of the longest one and of all.
    fn read(count: usize) -> (usize, u64, u64) {
        let terms = Terms::of("lighthouse").unwrap();
        let (mut reading, mut slices, mut longest, mut all) = (Reading::default(), 0, 0, 0);
        let mut more = true;
        while more {
            let steps = steps::steps(u64::MAX, || more = reading.read(&terms, count, text));
            (slices, longest, all) = (slices + 1, longest.max(steps), all + steps);
        }
        assert_eq!(reading.ranked(&terms).len(), count.div_ceil(10));
        (slices, longest, all)
    }

    #[test]
    fn every_slice_of_a_search_is_bounded_and_all_together_are_linear() {
        let ((few, _, once), (many, longest, twice)) = (read(2_000), read(4_000));
        // Each byte is counted at most three times: as text, as word and as part of a compound.
        assert!(longest <= 3 * (SLICE + PIECE) as u64, "{longest}");
        assert!(few >= 7 && many >= 2 * few - 1, "{few} and {many} slices");
        assert!(twice * 10 <= once * 22, "{once} steps, and {twice} for twice as many");
    }

    #[test]
    fn one_long_message_is_read_in_slices_too() {
        let terms = Terms::of("needle").unwrap();
        let long = format!("{} needle", "hay ".repeat(SLICE / 2));
        let mut reading = Reading::default();
        let mut slices = 1;
        while reading.read(&terms, 1, |_| Some(long.clone())) {
            slices += 1;
        }
        assert!(slices >= 2, "{slices}");
        let ranked = reading.ranked(&terms);
        assert!(ranked.len() == 1 && long[ranked[0].bytes.clone()].contains("needle"));
    }
}

#[cfg(test)]
mod words_tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |found, _| {
            let mut word = String::new();
            found.fold_to(&mut word);
            words.push(word);
        });
        words
    }

    #[test]
    fn a_path_is_its_words_and_itself() {
        let expected = ["in", "src", "parse", "rs", "src/parse.rs", "12", "5"];
        assert_eq!(words("in ./src/parse.rs:12:5."), expected);
        assert_eq!(words("std::fs E0425"), ["std", "fs", "std::fs", "e0425"]);
    }

    #[test]
    fn a_name_is_itself_and_its_parts() {
        assert_eq!(words("parse_Error"), ["parse_error", "parse", "error"]);
        assert_eq!(words("ParseError __x"), ["parseerror", "parse", "error", "__x", "x"]);
        assert_eq!(words("HTTPServer fn E"), ["httpserver", "http", "server", "fn", "e"]);
        let expected = ["max_retries", "max", "retries", "is", "maxretries", "max", "retries"];
        assert_eq!(words("MAX_RETRIES is maxRetries"), expected);
    }

    #[test]
    fn accents_and_widths_make_no_other_word() {
        let once = ["cafe", "ele", "angstrom", "naive", "abc"];
        assert_eq!(words("café élé Ångström naïve abc"), once);
        let decomposed = "CAFE\u{301} e\u{301}le\u{301} A\u{30a}ngstro\u{308}m NAÏVE ＡＢＣ";
        assert_eq!(words(decomposed), once);
    }

    #[test]
    fn in_scripts_without_spaces_each_character_is_a_word() {
        assert_eq!(words("Größe 端口ab"), ["große", "端", "口", "ab"]);
    }

    #[test]
    fn what_is_no_word_is_none_and_a_long_one_is_cut() {
        assert_eq!(words(" .*?[\u{1}\u{200b}]$ "), Vec::<String>::new());
        assert_eq!(words(&"x".repeat(10_000)), ["x".repeat(WORD)]);
    }
}
