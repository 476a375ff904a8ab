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
    iter,
    ops::Range,
};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{
    passage::{border, piece_end},
    request::{RecallError, Result},
    shapes::Shapes,
    tool::RECALL,
};
use crate::{
    log::Removed,
    message::{ContentBlock, Message, Text, steps},
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
    /// The words, folded. The number of a word is its index.
    words: Vec<String>,
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
        let mut terms = Self { words: Vec::new(), shapes: Shapes::default() };
        let mut word = String::new();
        each_word(query, |found, _| {
            found.fold_to(&mut word);
            let is_new = terms.words.len() < TERMS && !terms.words.contains(&word);
            if is_new && word.chars().any(char::is_alphanumeric) {
                terms.shapes.add(&word);
                terms.words.push(word.clone());
            }
        });
        if terms.words.is_empty() { Err(RecallError::NoWords) } else { Ok(terms) }
    }

    /// Returns the number of a word, if the query has it. `buffer` is for its folded form.
    fn number(&self, found: Found<'_>, buffer: &mut String) -> Option<usize> {
        let Found { text, most } = found;
        // Folding turns only a first letter beyond ASCII into another.
        if text.bytes().next().is_some_and(|first| first.is_ascii() && !self.shapes.begins(first)) {
            return None;
        }
        let text = steps::through(text);
        if text.is_ascii() {
            let text = text.get(..most).unwrap_or(text);
            return self.words.iter().position(|word| word.eq_ignore_ascii_case(text));
        }
        found.fold_to(buffer);
        self.words.iter().position(|word| word == buffer)
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

    /// Counts the words of a text, instead of those that `doc` counted before.
    ///
    /// Most words are only counted, as bits of blocks of bytes. Those between white space are read one
    /// by one if one of them may match, is a name with parts, is joined to another one, or has
    /// characters beyond ASCII.
    fn count(&self, text: &str, doc: &mut Doc) {
        doc.words = 0;
        doc.counts.clear();
        doc.counts.resize(self.words.len(), 0);
        let (blocks, rest) = steps::through(text).as_bytes().as_chunks::<64>();
        let mut last = [0; 64];
        last.iter_mut().zip(rest).for_each(|(byte, rest)| *byte = *rest);
        let (mut words, mut counted, mut end, mut before) = (0, 0, 0, 0);
        for (block, at) in blocks.iter().chain([&last]).zip((0..).step_by(64)) {
            let letters = bits(block, is_letter_byte);
            let begun = letters << 1 | before;
            before = letters >> 63;
            words += (letters & !begun).count_ones() as usize;
            for mark in ones(self.marks(block, letters, begun)) {
                if at + mark >= end {
                    let part = spaced(text, at + mark);
                    end = part.end;
                    let part = text.get(part).unwrap_or_default();
                    counted += letter_runs(part);
                    self.count_each(part, doc);
                }
            }
        }
        doc.words += words - counted;
    }

    /// Returns the bytes of a block for which the text around them must be read. `begun` has the bytes
    /// after a letter.
    fn marks(&self, block: &[u8; 64], letters: u64, begun: u64) -> u64 {
        let special = |byte: u8| byte.is_ascii_uppercase() | (byte == b'_') | !byte.is_ascii();
        let link = |byte: u8| matches!(byte, b'-'..=b'/' | b':' | b'\\');
        let mut marks = begun & bits(block, special);
        for at in ones(begun & bits(block, link)) {
            // A sentence ends here if white space follows. Of the last byte it is not known.
            let joins = block.get(at + 1).is_none_or(|next| *next > b' ');
            marks |= u64::from(joins) << at;
        }
        for at in ones(letters & !begun) {
            let Some(first) = block.get(at) else { break };
            let end = at + (letters >> at).trailing_ones() as usize;
            // A special byte inside the word has a mark of its own.
            let is_special = (*first == b'_') | !first.is_ascii();
            let (begins, has) = (self.shapes.begins(*first), self.shapes.has(*first, end - at));
            let may_match = has | (begins & (end == block.len()));
            marks |= u64::from(is_special | may_match) << at;
        }
        marks
    }

    /// Adds each word of a text to those that were counted.
    fn count_each(&self, text: &str, doc: &mut Doc) {
        let mut buffer = String::new();
        each_word(text, |found, _| {
            doc.words += 1;
            let term = self.number(found, &mut buffer);
            if let Some(count) = term.and_then(|term| doc.counts.get_mut(term)) {
                *count += 1;
            }
        });
    }
}

/// Returns a bit for each byte of a block. Written without branches, so that compilers compare whole
/// vector registers.
fn bits(block: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
    let mut found = [0_u8; 64];
    for (found, byte) in found.iter_mut().zip(block) {
        *found = u8::from(is(*byte));
    }
    let (eights, _) = found.as_chunks::<8>();
    eights.iter().zip((0..64).step_by(8)).fold(0, |bits, (eight, at)| {
        // The product has the lowest bit of byte n as bit 56 + n.
        let eight = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | eight << at
    })
}

/// Whether a byte is a letter, a digit, `_`, or of a character beyond ASCII.
fn is_letter_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'_') | !byte.is_ascii()
}

/// Returns the number of runs of such bytes.
fn letter_runs(text: &str) -> usize {
    let runs = text.as_bytes().split(|byte| !is_letter_byte(*byte));
    runs.filter(|run| !run.is_empty()).count()
}

/// The positions of the bits that are set, in order.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let next = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(next)
    })
}

/// Returns the range around an offset between ASCII white space or control characters, which no word
/// contains.
fn spaced(text: &str, at: usize) -> Range<usize> {
    let (before, after) = text.as_bytes().split_at_checked(at).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte <= b' ').map_or(0, |space| space + 1);
    let end = after.iter().position(|byte| *byte <= b' ').map_or(text.len(), |space| at + space);
    start..end
}

/// Whether a message contains only calls of the recall tool or their results. Such a message would
/// rank above the message that it quotes. `calls` has the ids of these calls in earlier messages, and
/// gets those of this one.
pub(super) fn is_quote(message: &Message, calls: &mut HashSet<Text>) -> bool {
    for call in message.tool_uses() {
        // A server may use the id of an earlier call again.
        match call.name == *RECALL {
            true => calls.insert(call.id.clone()),
            false => calls.remove(&call.id),
        };
    }
    let mut blocks = message.content.iter().filter(|block| Removed::is_content(block)).peekable();
    blocks.peek().is_some() && blocks.all(|block| quotes(block, calls))
}

/// Whether a block is a call of the recall tool, or the result of such a call.
fn quotes(block: &ContentBlock, calls: &HashSet<Text>) -> bool {
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
    /// The index of the message that is being read, or of the next one.
    index: usize,
    /// The text of the message at `index`.
    text: String,
    /// The offset in `text` at which to continue, if a part of the message was read.
    open: Option<usize>,
    piece: Doc,
    pieces: Docs,
    /// The words of the stretch that is being read, and its bytes.
    stretch: (Doc, usize),
    stretches: Docs,
    /// One for each of the matching pieces.
    hits: Vec<Hit>,
}

impl Reading {
    /// Reads the next slice, and returns whether there is more. `text` writes the text of each
    /// index below `count` into an empty buffer, or nothing to skip it.
    pub(super) fn read(
        &mut self,
        terms: &Terms,
        count: usize,
        mut text: impl FnMut(usize, &mut String),
    ) -> bool {
        let mut left = SLICE;
        while self.index < count && left > 0 {
            let start = self.open.take().unwrap_or_else(|| {
                self.text.clear();
                text(self.index, &mut self.text);
                0
            });
            let end = piece_end(&self.text, start, PIECE);
            left = left.saturating_sub((end - start).max(LEAST));
            if start < end {
                self.add(terms, start..end);
            }
            match end < self.text.len() {
                true => self.open = Some(end),
                false => self.index += 1,
            }
        }
        self.index < count
    }

    fn add(&mut self, terms: &Terms, bytes: Range<usize>) {
        terms.count(self.text.get(bytes.clone()).unwrap_or_default(), &mut self.piece);
        let (stretch, read) = &mut self.stretch;
        *read += bytes.len();
        if *read > PIECE {
            self.stretches.add(stretch);
            *stretch = Doc::default();
            *read = bytes.len();
        }
        stretch.join(&self.piece);
        if self.pieces.add(&self.piece) {
            self.hits.push(Hit {
                index: self.index,
                bytes,
                stretch: self.stretches.matching.len(),
            });
        }
    }

    /// Returns the number of messages that contain any of the words, and the first `most` of them:
    /// best first, the latest first among equals.
    pub(super) fn ranked(mut self, most: usize) -> (usize, Vec<Matched>) {
        self.stretches.add(&self.stretch.0);
        let mut best = best(self.hits, &self.pieces.scores(), &self.stretches.scores());
        let found = best.len();
        if most < found {
            best.select_nth_unstable_by(most, by_score);
            best.truncate(most);
        }
        best.sort_unstable_by(by_score);
        (found, best)
    }
}

/// A piece of a message that contains words of the query.
#[derive(Debug)]
struct Hit {
    index: usize,
    bytes: Range<usize>,
    /// The number of its stretch among those that match.
    stretch: usize,
}

/// The number of words in a text, and how often each word of the query occurs in it.
#[derive(Debug, Default)]
struct Doc {
    words: usize,
    counts: Vec<u32>,
}

impl Doc {
    fn join(&mut self, other: &Self) {
        self.words += other.words;
        self.counts.resize(other.counts.len(), 0);
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }
}

/// Texts that are ranked against each other.
#[derive(Debug, Default)]
struct Docs {
    /// The number of words in each text that contains a word of the query.
    matching: Vec<usize>,
    /// How often each word of the query occurs in each of these texts, one text after the other.
    counts: Vec<u32>,
    all: usize,
    words: usize,
}

impl Docs {
    /// Adds a text, and returns whether it contains a word of the query.
    fn add(&mut self, doc: &Doc) -> bool {
        self.all += 1;
        self.words += doc.words;
        let matches = doc.counts.iter().any(|count| *count > 0);
        if matches {
            self.matching.push(doc.words);
            self.counts.extend_from_slice(&doc.counts);
        }
        matches
    }

    /// Returns the BM25 score of each matching text. Each repetition of a word adds less than the
    /// one before, and words in a longer text count less.
    fn scores(&self) -> Vec<f32> {
        // The usual values for BM25.
        let (k1, b) = (1.2, 0.75);
        let average = (real(self.words) / real(self.all.max(1))).max(1.0);
        let terms = self.counts.len() / self.matching.len().max(1);
        let texts = self.matching.iter().zip(self.counts.chunks_exact(terms.max(1)));
        let mut holding = vec![0; terms];
        for (_, counts) in texts.clone() {
            for (holding, count) in holding.iter_mut().zip(counts) {
                *holding += usize::from(*count > 0);
            }
        }
        let rarity = holding
            .into_iter()
            .map(|count: usize| (1.0 + (real(self.all - count) + 0.5) / (real(count) + 0.5)).ln());
        let rarity: Vec<f32> = rarity.collect();
        let score = |(words, counts): (&usize, &[u32])| {
            let long = 1.0 - b + b * real(*words) / average;
            let mut score = 0.0;
            // Always add in the order of the words, because a sum of floats depends on the order.
            for (count, rarity) in counts.iter().zip(&rarity) {
                let count = real(*count as usize);
                score += rarity * count * (k1 + 1.0) / (count + k1 * long);
            }
            score
        };
        texts.map(score).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "weights need not be exact")]
fn real(count: usize) -> f32 {
    count as f32
}

/// Returns the best piece of each message. In each stretch, the score of the second message is
/// halved, that of the third divided by three, and so on.
fn best(hits: Vec<Hit>, pieces: &[f32], stretches: &[f32]) -> Vec<Matched> {
    // Hits are in the order of the thread, and so are the stretches of the best pieces.
    let mut best: Vec<(usize, Matched)> = Vec::new();
    for (Hit { index, bytes, stretch }, piece) in hits.into_iter().zip(pieces) {
        let score = piece + stretches.get(stretch).copied().unwrap_or_default();
        let matched = Matched { index, bytes, score };
        match best.last_mut().filter(|(_, last)| last.index == index) {
            Some((_, last)) if last.score >= score => {}
            Some(last) => *last = (stretch, matched),
            None => best.push((stretch, matched)),
        }
    }
    for stretch in best.chunk_by_mut(|(one, _), (other, _)| one == other) {
        stretch.sort_unstable_by(|(_, one), (_, other)| by_score(one, other));
        for ((_, matched), rank) in stretch.iter_mut().zip(1..) {
            matched.score /= real(rank);
        }
    }
    best.into_iter().map(|(_, matched)| matched).collect()
}

/// The best first, the latest first among equals.
fn by_score(one: &Matched, other: &Matched) -> Ordering {
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
    use crate::message::{Role, ToolResult, ToolUse, steps};

    /// Messages of a thousand bytes, of which every tenth has the word.
    fn text(index: usize, text: &mut String) {
        let word = if index.is_multiple_of(10) { "lighthouse" } else { "harbour" };
        *text = format!("{word} {}\n", "some more words ".repeat(62));
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
        assert_eq!(reading.ranked(1).0, count.div_ceil(10));
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
        while reading.read(&terms, 1, |_, text| text.push_str(&long)) {
            slices += 1;
        }
        assert!(slices >= 2, "{slices}");
        let (found, ranked) = reading.ranked(5);
        assert!(found == 1 && long[ranked[0].bytes.clone()].contains("needle"));
    }

    #[test]
    fn a_result_of_a_tool_is_no_quote_because_its_id_was_once_that_of_a_recall() {
        let round = |tool: &str| {
            let call = ToolUse::new("call_0", tool, serde_json::json!({}));
            let result = ToolResult::text("call_0", "fn parse() {}");
            [vec![call.into()], vec![result.into()]]
        };
        let mut calls = HashSet::new();
        let mut quotes = |tool| {
            round(tool).map(|content| is_quote(&Message::new(Role::User, content), &mut calls))
        };
        assert_eq!((quotes(RECALL), quotes("read")), ([true, true], [false, false]));
    }
}

/// All words of a text, folded.
#[cfg(test)]
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |found, _| {
        let mut word = String::new();
        found.fold_to(&mut word);
        words.push(word);
    });
    words
}

#[cfg(test)]
mod words_tests {
    use super::*;

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

/// Compares the search with a plain one, which reads each word and keeps maps.
#[cfg(test)]
mod plain_tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    #[derive(Default)]
    struct Counted {
        words: usize,
        counts: HashMap<usize, usize>,
    }

    fn plain_scores(terms: usize, all: &[Counted]) -> Vec<f32> {
        let words: usize = all.iter().map(|one| one.words).sum();
        let average = (real(words) / real(all.len().max(1))).max(1.0);
        let score = |one: &Counted| {
            let mut score = 0.0;
            for term in 0..terms {
                let holding = all.iter().filter(|one| one.counts.contains_key(&term)).count();
                let rarity = (1.0 + (real(all.len() - holding) + 0.5) / (real(holding) + 0.5)).ln();
                let count = real(one.counts.get(&term).copied().unwrap_or_default());
                let long = 1.0 - 0.75 + 0.75 * real(one.words) / average;
                score += rarity * count * (1.2 + 1.0) / (count + 1.2 * long);
            }
            score
        };
        all.iter().map(score).collect()
    }

    fn plain_ranked(texts: &[String], query: &str) -> Vec<Matched> {
        let mut terms: Vec<String> = Vec::new();
        for word in words(query) {
            if word.chars().any(char::is_alphanumeric) && !terms.contains(&word) {
                terms.push(word);
            }
        }
        terms.truncate(TERMS);
        let (mut places, mut pieces, mut stretches, mut read) =
            (Vec::new(), Vec::new(), vec![Counted::default()], 0);
        for (index, text) in texts.iter().enumerate() {
            let mut start = 0;
            while start < text.len() {
                let bytes = start..piece_end(text, start, PIECE);
                (start, read) = (bytes.end, read + bytes.len());
                if read > PIECE {
                    stretches.push(Counted::default());
                    read = bytes.len();
                }
                let (mut piece, stretch) = (Counted::default(), stretches.last_mut().unwrap());
                for word in words(&text[bytes.clone()]) {
                    (piece.words, stretch.words) = (piece.words + 1, stretch.words + 1);
                    if let Some(term) = terms.iter().position(|term| *term == word) {
                        *piece.counts.entry(term).or_default() += 1;
                        *stretch.counts.entry(term).or_default() += 1;
                    }
                }
                places.push((index, bytes, stretches.len() - 1));
                pieces.push(piece);
            }
        }
        let scores = plain_scores(terms.len(), &pieces);
        let of_stretches = plain_scores(terms.len(), &stretches);
        let mut best: HashMap<usize, (usize, Matched)> = HashMap::new();
        for ((piece, score), (index, bytes, stretch)) in pieces.iter().zip(scores).zip(places) {
            let matched = Matched { index, bytes, score: score + of_stretches[stretch] };
            let is_better = best.get(&index).is_none_or(|(_, it)| it.score < matched.score);
            if !piece.counts.is_empty() && is_better {
                best.insert(index, (stretch, matched));
            }
        }
        let mut best: Vec<_> = best.into_values().collect();
        best.sort_by(|(_, one), (_, other)| by_score(one, other));
        let mut taken: HashMap<usize, usize> = HashMap::new();
        for (stretch, matched) in &mut best {
            let taken = taken.entry(*stretch).or_default();
            *taken += 1;
            matched.score /= real(*taken);
        }
        let mut ranked: Vec<_> = best.into_iter().map(|(_, matched)| matched).collect();
        ranked.sort_by(by_score);
        ranked
    }

    fn text(most: usize) -> impl Strategy<Value = String> {
        let words = select(vec![
            "_x",
            "_Port",
            "port",
            "Port",
            "PORT",
            "next",
            "parse_error",
            "parseError",
            "HTTPServer",
            "__x",
            "_",
            "src",
            "rs",
            "fs",
            "E0425",
            "12",
            "café",
            "cafe\u{301}",
            "CAFÉ",
            "\u{301}",
            "é_É",
            "ı",
            "I\u{307}",
            "İ",
            "ıI",
            "straße",
            "ẞ",
            "ﬁn",
            "Ａｂｃ",
            "\u{212a}x",
            "²x",
            "端口",
            "ab端cd",
            "端\u{301}",
            "한국어",
            "日本_Go",
            "🦀",
            "👩\u{200d}💻",
            "\u{200b}",
            "\u{85}",
            "\"",
            "\\u00e9",
            "# user:",
            "<b>",
            "abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123",
        ]);
        let links =
            select(vec!["", " ", " ", " ", "/", "\\", ".", "::", "->", "-", "_", "\n", "\t"]);
        vec((words, links), 0..most).prop_map(|words| {
            words.into_iter().map(|(word, link)| format!("{word}{link}")).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

        #[test]
        fn the_words_of_a_text_are_those_that_are_read_one_by_one(
            texts in vec(text(6), 60),
            query in text(6),
        ) {
            let Ok(terms) = Terms::of(&query) else { return Ok(()) };
            for text in texts {
                let mut found = Doc::default();
                terms.count(&text, &mut found);
                let words = words(&text);
                let count = |term| words.iter().filter(|word| *word == term).count();
                let counts: Vec<usize> = terms.words.iter().map(count).collect();
                let found_counts: Vec<usize> = found.counts.iter().map(|it| *it as usize).collect();
                prop_assert_eq!((found.words, found_counts), (words.len(), counts), "{:?}", text);
            }
        }

        #[test]
        fn a_search_ranks_as_a_plain_one(
            texts in vec((text(40), 1..30_usize), 1..12),
            query in text(8),
            most in 0..20_usize,
        ) {
            let Ok(terms) = Terms::of(&query) else { return Ok(()) };
            let texts: Vec<String> = texts.iter().map(|(text, times)| text.repeat(*times)).collect();
            let mut reading = Reading::default();
            while reading.read(&terms, texts.len(), |index, text| text.push_str(&texts[index])) {}
            let mut expected = plain_ranked(&texts, &query);
            let found = expected.len();
            expected.truncate(most);
            prop_assert_eq!(reading.ranked(most), (found, expected));
        }
    }
}
