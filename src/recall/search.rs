//! Ranking messages by words, with BM25.
//!
//! A long message is searched in pieces, so that what holds words once in a long output is not
//! ranked behind what is short. All texts are looked through twice: once for how long pieces are on
//! average and which hold a word, and then those that do.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use bm25::{EmbedderBuilder, Embedding, Scorer, TokenEmbedder, Tokenizer};

use super::{
    passage::{border, piece_end},
    request::RecallError,
    tool::RECALL,
    words,
};
use crate::{
    log::Taken,
    message::{ContentBlock, Text},
};

/// How many matches one answer tells.
pub(super) const SHOWN: usize = 10;

/// How many different words of a query count, so that a search ends soon.
const TERMS: usize = 64;

/// How many bytes are searched as one.
const PIECE: usize = 4_000;

/// How many bytes around the words are told.
const EXCERPT: usize = 600;

/// The words that are looked for, with their places in the query.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms(HashMap<String, usize>);

/// A message that holds words, and the piece of it that holds them best.
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

    /// The bytes around where most of the words stand together, within a piece of a text.
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

    /// How many words a text has, and whether it has any that is looked for.
    fn count(&self, text: &str) -> (usize, bool) {
        let (mut count, mut any) = (0, false);
        words::each(text, |word, _| {
            count += 1;
            any |= self.0.contains_key(word);
        });
        (count, any)
    }
}

impl Tokenizer for Terms {
    /// Every word; those that are not looked for as an empty one, which counts and costs nothing.
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        words::each(text, |word, _| {
            tokens.push(if self.0.contains_key(word) { word.to_owned() } else { String::new() });
        });
        tokens
    }
}

/// The messages that only call for what was said before, or hold nothing but what came of it: by
/// their own words they would be found before what they quote.
pub(super) fn quoting(taken: &[Taken]) -> HashSet<u64> {
    let mut calls: HashSet<&Text> = HashSet::new();
    let mut quoting = HashSet::new();
    for taken in taken {
        let uses = taken.message.tool_uses().filter(|call| call.name == *RECALL);
        calls.extend(uses.map(|call| &call.id));
        let says = |block: &&ContentBlock| {
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
        let mut said = taken.message.content.iter().filter(says).peekable();
        if said.peek().is_some() && said.all(quotes) {
            quoting.insert(taken.number);
        }
    }
    quoting
}

/// Returns the messages that hold any of the words, best first, of so many whose texts are given by
/// number; those without a text are passed over. Of equals the latest comes first.
pub(super) fn ranked(
    terms: &Terms,
    count: usize,
    text: impl Fn(usize) -> Option<String>,
) -> Vec<Matched> {
    let (mut all, mut words, mut hits) = (0_usize, 0_usize, Vec::new());
    for index in 0..count {
        let Some(text) = text(index) else { continue };
        let mut any = false;
        for piece in pieces(&text) {
            let (count, hit) = terms.count(text.get(piece).unwrap_or_default());
            (all, words, any) = (all + 1, words + count, any | hit);
        }
        if any {
            hits.push(index);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "an average need not be exact")]
    let average = words as f32 / all.max(1) as f32;
    let embedder =
        EmbedderBuilder::<u64, Terms>::with_avgdl(average).tokenizer(terms.clone()).build();
    let embed = |text: &str| once_each(embedder.embed(text));
    let (mut scorer, mut places) = (Scorer::<usize, u64>::new(), Vec::new());
    for index in hits {
        let text = text(index).unwrap_or_default();
        for bytes in pieces(&text) {
            scorer.upsert(&places.len(), embed(text.get(bytes.clone()).unwrap_or_default()));
            places.push((index, bytes));
        }
    }
    // How rare a word is depends on how many pieces there are in all.
    (places.len()..all).for_each(|other| scorer.upsert(&other, Embedding(Vec::new())));
    let mut query: Vec<(&String, &usize)> = terms.0.iter().collect();
    query.sort_unstable_by_key(|(_, number)| **number);
    let query: Vec<&str> = query.into_iter().map(|(word, _)| word.as_str()).collect();
    best(&scorer, &embed_words(&query), &places)
}

/// The words of the query, each once.
fn embed_words(words: &[&str]) -> Embedding<u64> {
    let embedding = |word: &&str| bm25::TokenEmbedding { index: u64::embed(word), value: 1.0 };
    Embedding(words.iter().map(embedding).collect())
}

/// The best piece of each message, best first.
fn best(
    scorer: &Scorer<usize, u64>,
    query: &Embedding<u64>,
    places: &[(usize, Range<usize>)],
) -> Vec<Matched> {
    let mut best: HashMap<usize, Matched> = HashMap::new();
    for scored in scorer.matches(query) {
        let Some((index, bytes)) = places.get(scored.id) else { continue };
        let matched = Matched { index: *index, bytes: bytes.clone(), score: scored.score };
        let found = best.entry(*index).or_insert_with(|| matched.clone());
        let is_better = found.score < matched.score;
        if is_better || (found.score == matched.score && matched.bytes.start < found.bytes.start) {
            *found = matched;
        }
    }
    let mut best: Vec<Matched> = best.into_values().collect();
    best.sort_unstable_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.index.cmp(&one.index))
    });
    best
}

/// The words of a text that are looked for, each once: how often they stand there is in the value.
fn once_each(embedding: Embedding<u64>) -> Embedding<u64> {
    let mut seen = HashSet::from([u64::embed("")]);
    Embedding(embedding.0.into_iter().filter(|token| seen.insert(token.index)).collect())
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

/// The stretch, of what an excerpt holds, with most different words in it.
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
