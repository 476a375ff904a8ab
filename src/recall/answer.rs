//! Finding in a log what is asked for, within a bound.

use serde_json::Value;

use super::{
    passage::{HEAD, HEADING, Passage, Recalled, border, piece_end},
    request::{RecallError, RecallRequest},
};
use crate::{
    log::{EventLog, Taken},
    message::{CheckpointId, ContentBlock, Message, Redactor},
    render::{self, RenderOptions},
};

/// How many bytes an answer has at most, by default: some 4,000 tokens.
pub const MAX_BYTES: usize = 16_000;

/// The least bound. A smaller one would leave no room for a text beside the headings.
pub const MIN_BYTES: usize = 1_500;

/// What was compacted away in a log, for whoever asks.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Recall<'a> {
    log: &'a EventLog,
    redactor: Option<&'a dyn Redactor>,
    max_bytes: usize,
}

impl<'a> Recall<'a> {
    /// Returns what was compacted away in this log, told in answers of [`MAX_BYTES`].
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::recall::{Recall, RecallRequest};
    /// use threadfold::{EventLog, Message, Plan, Replacement, compact::CompactOptions, message::*};
    ///
    /// let (mut log, port) = (EventLog::new("main".parse()?), Message::assistant("The port is 8443."));
    /// log.append(Timestamp(1), Event::MessageAppended(port.clone()))?;
    /// let plan = Plan::new(&[port], &[Replacement::new("A port.")], &CompactOptions::default())?;
    /// let record = CompactionRecord::new(CompactionId(0), CompactionReason::Threshold, "by-hand", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    ///
    /// let recalled = Recall::of(&log).answer(&RecallRequest::default())?;
    /// assert!(recalled.passages[0].text.contains("The port is 8443."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(log: &'a EventLog) -> Self {
        Self { log, redactor: None, max_bytes: MAX_BYTES }
    }

    /// Returns it without what the redactor takes out: it is neither told nor found.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{EventLog, message::Redactor, recall::{Recall, RecallRequest}};
    /// # use threadfold::{Message, Plan, Replacement, compact::CompactOptions, message::*};
    /// # use threadfold::log::{CompactionRecord, Event};
    /// # let (mut log, key) = (EventLog::new("main".parse()?), Message::assistant("The key is sk-123."));
    /// # log.append(Timestamp(1), Event::MessageAppended(key.clone()))?;
    /// # let plan = Plan::new(&[key], &[Replacement::new("A key.")], &CompactOptions::default())?;
    /// # let record = CompactionRecord::new(CompactionId(0), CompactionReason::Threshold, "by-hand", plan);
    /// # log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    ///
    /// #[derive(Debug)]
    /// struct Keys;
    ///
    /// impl Redactor for Keys {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace("sk-123", "[key]").into()
    ///     }
    /// }
    ///
    /// // "The key is sk-123." was compacted away in this log.
    /// let recalled = Recall::of(&log).redacted_by(&Keys).answer(&RecallRequest::default())?;
    /// assert!(recalled.passages[0].text.contains("The key is [key]."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redacted_by(self, redactor: &'a dyn Redactor) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// Returns it with answers of at most so many bytes, of [`MIN_BYTES`] at least.
    ///
    /// ```
    /// use threadfold::{log::EventLog, recall::{Recall, RecallRequest}};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let recalled = Recall::of(&log).within(4_000).answer(&RecallRequest::default())?;
    /// assert!(recalled.passages.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn within(self, max_bytes: usize) -> Self {
        Self { max_bytes: max_bytes.max(MIN_BYTES), ..self }
    }

    /// Carries out a call of the tool: reads its input and returns the text for the model.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::{EventLog, recall::Recall};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let recall = Recall::of(&log);
    /// assert_eq!(recall.call(&json!({}))?, "Nothing there was compacted away.");
    /// assert!(recall.call(&json!({"from": 5})).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RecallError`], in words for the model.
    pub fn call(&self, input: &Value) -> Result<String, RecallError> {
        Ok(self.answer(&RecallRequest::parse(input)?)?.to_string())
    }

    /// Returns what is asked for, as much of it as there is room for.
    ///
    /// ```
    /// use threadfold::{EventLog, recall::{Recall, RecallError, RecallRequest}};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let request = RecallRequest::Message { number: 3, offset: 0 };
    /// let error = Recall::of(&log).answer(&request).unwrap_err();
    /// assert_eq!(error, RecallError::NotTaken { number: 3 });
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RecallError`]: what is asked for is not there, a query that has no word, is too long or
    /// cannot be answered without the feature `recall`, a log that cannot be read.
    pub fn answer(&self, request: &RecallRequest) -> Result<Recalled, RecallError> {
        let taken = self.log.taken()?;
        let recalled = match request {
            RecallRequest::Range { from, to, offset } => {
                self.range(&taken, (*from, *to), *offset)?
            }
            RecallRequest::Message { number, offset } => self.message(&taken, *number, *offset)?,
            RecallRequest::Search { query, offset } => self.search(&taken, query, *offset)?,
        };
        Ok(Recalled { request: request.clone(), ..recalled })
    }

    /// How many bytes all passages may have, headings included.
    fn room(&self) -> usize {
        self.max_bytes.saturating_sub(HEAD)
    }

    fn range(
        &self,
        taken: &[Taken],
        (from, to): (Option<CheckpointId>, Option<CheckpointId>),
        offset: u64,
    ) -> Result<Recalled, RecallError> {
        let begin = from.map_or(Ok(0), |id| self.place(taken, id).map(|place| place.after))?;
        let end = to.map_or(Ok(u64::MAX), |id| self.place(taken, id).map(|place| place.end))?;
        if let (Some(from), Some(to)) = (from, to)
            && end <= begin
        {
            return Err(RecallError::Inverted { from, to });
        }
        let within = |taken: &&Taken| (begin..end).contains(&taken.number);
        let found = taken.iter().filter(within).count();
        let mut recalled = Recalled { found, ..Recalled::default() };
        let mut room = self.room();
        for taken in taken.iter().filter(within).filter(|taken| taken.number >= offset) {
            let text = self.text(taken);
            let fits = text.len() + HEADING <= room;
            if !fits && !recalled.passages.is_empty() {
                recalled.next = Some(taken.number);
                break;
            }
            let end = piece_end(&text, 0, room.saturating_sub(HEADING));
            room = room.saturating_sub(end + HEADING);
            recalled.passages.push(passage(taken, &text, 0..end));
        }
        Ok(recalled)
    }

    fn message(&self, taken: &[Taken], number: u64, offset: u64) -> Result<Recalled, RecallError> {
        let place = taken.binary_search_by_key(&number, |taken| taken.number).ok();
        let taken = place.and_then(|place| taken.get(place));
        let taken = taken.ok_or(RecallError::NotTaken { number })?;
        let text = self.text(taken);
        let start = usize::try_from(offset).ok().filter(|start| *start < text.len());
        let beyond = RecallError::Beyond { number, offset, len: text.len() };
        let start = border(&text, start.ok_or(beyond)?);
        let end = piece_end(&text, start, self.room() - HEADING);
        let next = (end < text.len()).then_some(end as u64);
        let passages = vec![passage(taken, &text, start..end)];
        Ok(Recalled { passages, found: 1, next, ..Recalled::default() })
    }

    #[cfg(not(feature = "recall"))]
    #[expect(clippy::unused_self, reason = "with the feature it searches")]
    fn search(&self, _: &[Taken], _: &str, _: u64) -> Result<Recalled, RecallError> {
        Err(RecallError::NoSearch)
    }

    #[cfg(feature = "recall")]
    fn search(&self, taken: &[Taken], query: &str, offset: u64) -> Result<Recalled, RecallError> {
        use super::search::{self, Terms};

        let terms = Terms::of(query)?;
        let quoting = search::quoting(taken);
        let text = |index: usize| {
            let taken = taken.get(index).filter(|taken| !quoting.contains(&taken.number))?;
            Some(self.text(taken))
        };
        let ranked = search::ranked(&terms, taken.len(), text);
        let found = ranked.len();
        let mut recalled = Recalled { found, ..Recalled::default() };
        let mut room = self.room();
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        for (rank, matched) in ranked.into_iter().enumerate().skip(skip) {
            let Some(taken) = taken.get(matched.index) else { continue };
            let text = self.text(taken);
            let bytes = terms.excerpt(&text, matched.bytes);
            if recalled.passages.len() == search::SHOWN || bytes.len() + HEADING > room {
                recalled.next = Some(rank as u64);
                break;
            }
            room -= bytes.len() + HEADING;
            recalled.passages.push(passage(taken, &text, bytes));
        }
        Ok(recalled)
    }

    /// The text of a message, without the heading of its role.
    fn text(&self, taken: &Taken) -> String {
        let redacted = self.redactor.map(|redactor| taken.message.redacted(redactor));
        let message = redacted.as_ref().unwrap_or(&taken.message);
        let options = RenderOptions {
            checkpoints: true,
            context_texts: true,
            document_texts: true,
            ..RenderOptions::default()
        };
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = render::write_to(std::slice::from_ref(message), &options, &mut text);
        let heading = text.find("\n\n").map_or(0, |end| end + 2);
        text.drain(..heading);
        if text.is_empty() { "(nothing that can be shown)\n\n".to_owned() } else { text }
    }

    /// Where a checkpoint is, in what went or in what stands.
    fn place(&self, taken: &[Taken], id: CheckpointId) -> Result<Place, RecallError> {
        let went = taken.iter().filter_map(|taken| Place::of(taken.number, &taken.message, id));
        let projection = self.log.projection()?;
        let stands = projection.messages.iter().zip(&projection.sources);
        let stands = stands.filter_map(|(message, source)| {
            let number = self.log.arrival_number(source.seq())?;
            Place::of(number, message, id)
        });
        let widest = |one: Place, other: Place| Place {
            after: one.after.min(other.after),
            end: one.end.max(other.end),
        };
        went.chain(stands).reduce(widest).ok_or(RecallError::UnknownCheckpoint { id })
    }
}

/// Where a checkpoint is.
#[derive(Clone, Copy)]
struct Place {
    /// The first message that a range has which begins with it.
    after: u64,
    /// The first message that a range has not which ends with it.
    end: u64,
}

impl Place {
    fn of(number: u64, message: &Message, id: CheckpointId) -> Option<Self> {
        let is_it =
            |block: &ContentBlock| matches!(block, ContentBlock::Checkpoint(mark) if mark.id == id);
        let at = message.content.iter().position(is_it)?;
        // What stands behind it in the same message belongs to what begins with it.
        let mut behind = message.content.iter().skip(at + 1);
        let goes_on = behind.any(|block| !matches!(block, ContentBlock::Checkpoint(_)));
        Some(Self { after: number + u64::from(!goes_on), end: number + 1 })
    }
}

fn passage(taken: &Taken, text: &str, bytes: std::ops::Range<usize>) -> Passage {
    Passage {
        number: taken.number,
        seq: taken.seq,
        at: taken.at,
        role: taken.message.role,
        text: text.get(bytes.clone()).unwrap_or_default().to_owned(),
        bytes,
        len: text.len(),
    }
}
