//! Ranking messages by the words of a query, with BM25, in two stages: which stretch, then which
//! messages.
//!
//! A long message is searched in pieces, so that a match in long output does not rank below a short
//! message. Each text is read once, and only the words of the query are counted: an index of all
//! words would cost many times the time and memory of a search.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use bm25::{Embedding, Scorer, TokenEmbedding};

use super::{
    passage::{border, piece_end, shown},
    request::RecallError,
    tool::RECALL,
    words,
};
use crate::{
    log::Taken,
    message::{ContentBlock, Message, Text},
};

/// The most matches in one answer.
pub(super) const SHOWN: usize = 10;

/// The most different words of a query that count, so that a search ends soon.
const TERMS: usize = 64;

/// The most bytes of a piece.
const PIECE: usize = 4_000;

/// The most bytes of an excerpt around the words.
const EXCERPT: usize = 600;

/// The words of a query, each with its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms(HashMap<String, usize>);

/// A message that matches a query, and its best piece.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matched {
    pub(super) index: usize,
    pub(super) bytes: Range<usize>,
    score: f32,
}

impl Terms {
    pub(super) fn of(query: &str) -> Result<Self, RecallError> {
        let found = query.len();
        if found > super::request::MAX_QUERY_BYTES {
            return Err(RecallError::QueryLength { found });
        }
        let mut terms = HashMap::new();
        words::each(query, |word, _| {
            let number = terms.len();
            if number < TERMS && word.chars().any(char::is_alphanumeric) {
                terms.entry(word.to_owned()).or_insert(number);
            }
        });
        if terms.is_empty() { Err(RecallError::NoWords) } else { Ok(Self(terms)) }
    }

    /// Returns the bytes around the most words that are close together in a piece of a text.
    pub(super) fn excerpt(&self, text: &str, piece: Range<usize>) -> Range<usize> {
        let mut hits: Vec<(Range<usize>, usize)> = Vec::new();
        words::each(text.get(piece.clone()).unwrap_or_default(), |word, range| {
            hits.extend(self.0.get(word).map(|term| (range, *term)));
        });
        let (start, end) = closest(&hits);
        let (start, end) = (piece.start + start, piece.start + end);
        let slack = EXCERPT.saturating_sub(end - start);
        let start = border(text, start.saturating_sub(slack / 3).max(piece.start));
        start..piece_end(text, start, EXCERPT).max(border(text, end.min(start + EXCERPT)))
    }

    fn count(&self, text: &str) -> Doc {
        let mut doc = Doc::default();
        words::each(text, |word, _| {
            doc.words += 1;
            if let Some(term) = self.0.get(word) {
                *doc.counts.entry(*term).or_default() += 1;
            }
        });
        doc
    }
}

/// Returns the words of a query.
pub(crate) fn query_words(query: &str) -> Result<Vec<String>, RecallError> {
    Ok(Terms::of(query)?.0.into_keys().collect())
}

/// Returns the different words by which a message is found, as [`ranked`] reads them: piece by piece.
pub(crate) fn message_words(message: &Message) -> Vec<String> {
    let text = shown(message);
    let mut found = HashSet::new();
    for bytes in pieces(&text) {
        words::each(text.get(bytes).unwrap_or_default(), |word, _| {
            if word.chars().any(char::is_alphanumeric) && !found.contains(word) {
                found.insert(word.to_owned());
            }
        });
    }
    found.into_iter().collect()
}

/// Returns the numbers of messages that contain only calls of the recall tool or their results.
/// Such a message would rank above the message that it quotes.
pub(super) fn quoting(taken: &[Taken]) -> HashSet<u64> {
    let mut calls: HashSet<&Text> = HashSet::new();
    let mut quoting = HashSet::new();
    for taken in taken {
        let uses = taken.message.tool_uses().filter(|call| call.name == *RECALL);
        calls.extend(uses.map(|call| &call.id));
        let has_content = |block: &&ContentBlock| {
            !matches!(block, ContentBlock::Checkpoint(_) | ContentBlock::SystemReminder(_))
                && !block.is_reasoning()
        };
        let quotes = |block: &ContentBlock| match block {
            ContentBlock::ToolUse(call) => calls.contains(&call.id),
            ContentBlock::ToolResult(result) => calls.contains(&result.tool_use_id),
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => false,
        };
        let mut blocks = taken.message.content.iter().filter(has_content).peekable();
        if blocks.peek().is_some() && blocks.all(quotes) {
            quoting.insert(taken.number);
        }
    }
    quoting
}

/// Returns the messages that contain any of the words, best first and of equal ones the latest
/// first. `text` returns the text of each index below `count`, or `None` to skip it.
///
/// A message is rated by its own words and by those of the stretch that it is in, because a question
/// often has words of what was said around its answer. Of each further message of a stretch less is
/// expected, so that several stretches come first.
pub(super) fn ranked(
    terms: &Terms,
    count: usize,
    text: impl Fn(usize) -> Option<String>,
) -> Vec<Matched> {
    let (mut pieces_read, mut hits) = (Docs::default(), Vec::new());
    let (mut stretches, mut stretch, mut bytes_read) = (Docs::default(), Doc::default(), 0);
    for index in 0..count {
        let Some(text) = text(index) else { continue };
        for bytes in pieces(&text) {
            let doc = terms.count(text.get(bytes.clone()).unwrap_or_default());
            bytes_read += bytes.len();
            if bytes_read > PIECE {
                bytes_read = bytes.len();
                stretches.add(std::mem::take(&mut stretch));
            }
            stretch.join(&doc);
            if !doc.counts.is_empty() {
                let (piece, stretch) = (pieces_read.all, stretches.all);
                hits.push(Hit { index, bytes, piece, stretch });
            }
            pieces_read.add(doc);
        }
    }
    stretches.add(stretch);
    best(&hits, &pieces_read.scores(terms), &stretches.scores(terms))
}

/// A piece of a message that contains words of the query.
struct Hit {
    index: usize,
    bytes: Range<usize>,
    /// Its number among all pieces.
    piece: usize,
    /// The number of the stretch that it is in.
    stretch: usize,
}

/// How many words a text has, and how often each word of the query occurs.
#[derive(Default)]
struct Doc {
    /// Its number among all.
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

    /// Returns the BM25 weights of its words, without their rarity. Repeated words count ever less,
    /// and words in a longer text count less.
    fn weighed(&self, average: f32) -> Embedding<usize> {
        // The usual values for BM25.
        let (k1, b) = (1.2, 0.75);
        let long = 1.0 - b + b * real(self.words) / average.max(1.0);
        let weight = |(index, count): (&usize, &usize)| {
            let count = real(*count);
            TokenEmbedding { index: *index, value: count * (k1 + 1.0) / (count + k1 * long) }
        };
        Embedding(self.counts.iter().map(weight).collect())
    }
}

/// Texts that are rated beside each other.
#[derive(Default)]
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
        let mut scorer = Scorer::<usize, usize>::new();
        for doc in &self.matching {
            scorer.upsert(&doc.number, doc.weighed(average));
        }
        // Add the texts without a match, because the rarity of a word depends on their number.
        let empty = self.all - self.matching.len();
        (0..empty).for_each(|other| scorer.upsert(&(self.all + other), Embedding(Vec::new())));
        let query = (0..terms.0.len()).map(|index| TokenEmbedding { index, value: 1.0 });
        let scored = scorer.matches(&Embedding(query.collect()));
        scored.into_iter().map(|scored| (scored.id, scored.score)).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "weights need not be exact")]
fn real(count: usize) -> f32 {
    count as f32
}

/// Returns the best piece of each message, best first.
fn best(
    hits: &[Hit],
    pieces: &HashMap<usize, f32>,
    stretches: &HashMap<usize, f32>,
) -> Vec<Matched> {
    let score = |scores: &HashMap<usize, f32>, of| scores.get(&of).copied().unwrap_or_default();
    let mut best: HashMap<usize, (usize, Matched)> = HashMap::new();
    for Hit { index, bytes, piece, stretch } in hits {
        let score = score(pieces, *piece) + score(stretches, *stretch);
        let matched = Matched { index: *index, bytes: bytes.clone(), score };
        let (in_stretch, found) = best.entry(*index).or_insert_with(|| (*stretch, matched.clone()));
        let is_better = found.score < matched.score;
        if is_better || (found.score == matched.score && matched.bytes.start < found.bytes.start) {
            (*in_stretch, *found) = (*stretch, matched);
        }
    }
    let mut best: Vec<(usize, Matched)> = best.into_values().collect();
    let sort = |best: &mut Vec<(usize, Matched)>| {
        best.sort_unstable_by(|(_, one), (_, other)| {
            other.score.total_cmp(&one.score).then(other.index.cmp(&one.index))
        });
    };
    sort(&mut best);
    let mut taken: HashMap<usize, usize> = HashMap::new();
    for (stretch, matched) in &mut best {
        let before = taken.entry(*stretch).or_default();
        matched.score /= real(1 + *before);
        *before += 1;
    }
    sort(&mut best);
    best.into_iter().map(|(_, matched)| matched).collect()
}

fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = piece_end(text, start, PIECE);
        let piece = (start < end).then_some(start..end);
        start = end;
        piece
    })
}

/// Returns the byte range with the most different words that fits into an excerpt.
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
