//! Prompt caches: what is read, what is written, what it costs.

use std::collections::HashMap;

use threadfold::message::Timestamp;

use super::{
    numbers::chain,
    piece::{Life, Piece},
    rule::Rule,
};

/// The rules of a prompt cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CacheRules {
    /// The tokens of the shortest prefix that is cached.
    pub(super) minimum: u64,
    /// Who marks the ends of prefixes.
    pub(super) marks: CacheMarks,
    /// The price of a token that is read from the cache, as a multiple of an uncached one.
    pub(super) read_price: f64,
    /// The price of a token that is written to an entry of up to 30 minutes.
    pub(super) write_price: f64,
    /// The price of a token that is written to an entry of an hour.
    pub(super) hour_write_price: f64,
    /// The rule with its source.
    pub(super) rule: &'static Rule,
}

/// Who marks the ends of the prefixes that are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheMarks {
    /// The request does. An entry is found if it ends at most this many blocks before a mark.
    Explicit {
        /// The number of blocks.
        lookback: usize,
    },
    /// The server caches every prefix, for this long after its last use.
    Implicit {
        /// Milliseconds.
        life: u64,
    },
}

/// What the cache did for a prompt, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Neither read nor written.
    pub plain: u64,
    /// Read.
    pub read: u64,
    /// Written to entries of up to 30 minutes.
    pub written: u64,
    /// Written to entries of an hour.
    pub written_hour: u64,
}

impl CacheUse {
    /// Returns the tokens of the whole prompt.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.plain + self.read + self.written + self.written_hour
    }

    /// Returns the price of the prompt, in uncached tokens.
    pub(super) fn price(&self, rules: &CacheRules) -> f64 {
        let times = |tokens: u64, price: f64| tokens as f64 * price;
        self.plain as f64
            + times(self.read, rules.read_price)
            + times(self.written, rules.write_price)
            + times(self.written_hour, rules.hour_write_price)
    }
}

/// The entries of a cache: the ends of prefixes, by the hash of all pieces up to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache(HashMap<u64, Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    life: Life,
    until: u64,
}

/// The end of a prefix of this prompt.
struct End {
    hash: u64,
    tokens: u64,
    life: Option<Life>,
}

impl Cache {
    /// Looks a prompt up and writes its marked prefixes. The model is part of every prefix.
    pub(super) fn take(
        &mut self,
        pieces: &[Piece],
        model: u64,
        rules: &CacheRules,
        now: Timestamp,
    ) -> CacheUse {
        self.0.retain(|_, entry| entry.until > now.0);
        let ends = ends(pieces, model, rules);
        let all = ends.last().map_or(0, |end| end.tokens);
        let is_live = |end: &End| end.tokens >= rules.minimum && self.0.contains_key(&end.hash);
        let hit = match rules.marks {
            CacheMarks::Implicit { .. } => ends.iter().rposition(is_live),
            CacheMarks::Explicit { lookback } => {
                let marks = ends.iter().enumerate().filter(|(_, end)| end.life.is_some());
                let hits = marks.filter_map(|(mark, _)| {
                    let from = mark.saturating_sub(lookback);
                    let near = ends.get(from..=mark)?;
                    near.iter().rposition(is_live).map(|place| from + place)
                });
                hits.max()
            }
        };
        let read = hit.and_then(|hit| ends.get(hit)).map_or(0, |end| end.tokens);
        let mut used = CacheUse { read, ..CacheUse::default() };
        if let Some(entry) =
            hit.and_then(|hit| ends.get(hit)).and_then(|end| self.0.get_mut(&end.hash))
        {
            entry.until = now.0 + entry.life;
        }
        let mut written_to = read;
        for end in ends.iter().filter(|end| end.tokens >= rules.minimum) {
            let Some(life) = end.life else { continue };
            let new = end.tokens.saturating_sub(written_to);
            written_to = written_to.max(end.tokens);
            match life >= 60 * super::piece::MINUTE {
                true => used.written_hour += new,
                false => used.written += new,
            }
            self.0.insert(end.hash, Entry { life, until: now.0 + life });
        }
        used.plain = all - written_to;
        used
    }
}

fn ends(pieces: &[Piece], model: u64, rules: &CacheRules) -> Vec<End> {
    let (mut hash, mut tokens) = (model, 0);
    let ends = pieces.iter().map(|piece| {
        hash = chain(hash, piece.hash);
        tokens += piece.tokens;
        let life = match rules.marks {
            CacheMarks::Implicit { life } => Some(life),
            CacheMarks::Explicit { .. } => piece.mark,
        };
        End { hash, tokens, life }
    });
    ends.collect()
}
