//! Answering requests from a log, in a bounded number of bytes.

use super::request::Result;

#[cfg(feature = "recall")]
use std::collections::HashSet;
use std::{iter, mem, ops::Range};

use serde_json::Value;

#[cfg(feature = "recall")]
use super::search::{self, Reading, Terms};
use super::{
    passage::{HEADING, INTRODUCTION, Passage, Recalled, border, piece_end, render},
    request::{RecallError, RecallRequest},
};
use crate::{
    log::{Event, EventLog, Removed},
    message::{
        CheckpointId, ContentBlock, Message, Redactor, Role, Text, quoted, redact::redacted_text,
    },
};

/// The default maximum of the bytes of an answer, about 4,000 tokens.
pub const MAX_BYTES: usize = 16_000;

/// The minimum that a host can set instead of [`MAX_BYTES`]. A smaller answer would have no room
/// for texts.
pub const MIN_BYTES: usize = 1_500;

/// Answers requests for messages that compactions removed, from a log.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Recall<'a> {
    log: &'a EventLog,
    redactor: Option<&'a dyn Redactor>,
    max_bytes: usize,
}

impl<'a> Recall<'a> {
    /// Returns a recall over this log. Its answers have at most [`MAX_BYTES`] bytes.
    ///
    /// ```
    /// use threadfold::log::{CompactionRecord, Event};
    /// use threadfold::recall::Recall;
    /// use threadfold::{EventLog, Message, Plan, Replacement, compact::CompactOptions, message::*};
    ///
    /// let (mut log, port) = (EventLog::new("main".parse()?), Message::assistant("The port is 8443."));
    /// log.append(Timestamp(1), Event::MessageAppended(port.clone()))?;
    /// let plan = Plan::new(&[port], &[Replacement::new("A port.")], &CompactOptions::default())?;
    /// let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
    /// let record = CompactionRecord::new(id, reason, "by-hand", plan);
    /// log.append(Timestamp(2), Event::Compacted(Box::new(record)))?;
    ///
    /// let recalled = Recall::of(&log).call(&serde_json::json!({}))?;
    /// assert!(recalled.contains("The port is 8443."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(log: &'a EventLog) -> Self {
        Self { log, redactor: None, max_bytes: MAX_BYTES }
    }

    /// Returns the recall with a redactor. Text that the redactor removes is neither shown nor
    /// found.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{EventLog, message::Redactor, recall::Recall};
    /// # use threadfold::{Message, Plan, Replacement, compact::CompactOptions, message::*};
    /// # use threadfold::log::{CompactionRecord, Event};
    /// # let mut log = EventLog::new("main".parse()?);
    /// # let key = Message::assistant("The key is sk-123.");
    /// # log.append(Timestamp(1), Event::MessageAppended(key.clone()))?;
    /// # let plan = Plan::new(&[key], &[Replacement::new("A key.")], &CompactOptions::default())?;
    /// # let (id, reason) = (CompactionId(0), CompactionReason::Threshold);
    /// # let record = CompactionRecord::new(id, reason, "by-hand", plan);
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
    /// let recalled = Recall::of(&log).redacted_by(&Keys).call(&serde_json::json!({}))?;
    /// assert!(recalled.contains("The key is [key]."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redacted_by(self, redactor: &'a dyn Redactor) -> Self {
        Self { redactor: Some(redactor), ..self }
    }

    /// Returns the recall with this maximum of bytes in an answer, but at least [`MIN_BYTES`].
    ///
    /// ```
    /// use threadfold::{log::EventLog, recall::Recall};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let recalled = Recall::of(&log).within(4_000).call(&serde_json::json!({}))?;
    /// assert!(recalled.len() <= 4_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn within(self, max_bytes: usize) -> Self {
        Self { max_bytes: max_bytes.max(MIN_BYTES), ..self }
    }

    /// Runs the tool: reads its input and returns the text for the model.
    ///
    /// The input is `{"from"?, "to"?, "offset"?}` for a range of checkpoints, `{"message",
    /// "offset"?}` for a message by its number, `{"call", "offset"?}` for the whole result of a
    /// tool call, or `{"query", "offset"?}` for a search by words. A `null` counts as absent, and a
    /// checkpoint may also be written as its marker, `<checkpoint:a1b2c3>`. If there is more, the
    /// answer states the offset to continue with.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::{EventLog, recall::{Recall, RecallError}};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// let recall = Recall::of(&log);
    /// assert_eq!(recall.call(&json!({}))?, "No message of this range was removed by a compaction.");
    /// let error = recall.call(&json!({"message": 3})).unwrap_err();
    /// assert_eq!(error, RecallError::NotRemoved { number: 3 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RecallError`], whose text is written for the model, for an invalid field, a message or
    /// checkpoint that does not exist, a query without a word, too long or without the feature
    /// `recall`, or a log that cannot be read.
    pub fn call(&self, input: &Value) -> Result<String> {
        Ok(self.begin(input)?.flatten().next().unwrap_or_default())
    }

    /// Same as [`call`](Self::call), but in steps, so that a search of a long conversation does not
    /// block other work. The last item of the iterator is the text; the others are `None`. A step
    /// reads about 256 KiB; the last step of a search also ranks the matches.
    ///
    /// ```
    /// use serde_json::json;
    /// use threadfold::{log::EventLog, recall::{NO_MATCH, Recall}};
    ///
    /// let log = EventLog::new("main".parse()?);
    /// // Other work may be done between two steps.
    /// let recalled = Recall::of(&log).begin(&json!({"query": "port"}))?.last().flatten();
    /// assert_eq!(recalled.as_deref(), Some(NO_MATCH));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn begin(&self, input: &Value) -> Result<impl Iterator<Item = Option<String>> + use<'a>> {
        let request = RecallRequest::parse(input)?;
        let mut step = Some(self.begin_from(self.log.removed()?, &request)?);
        Ok(iter::from_fn(move || {
            let recalled = step.as_mut()?();
            if recalled.is_some() {
                step = None;
            }
            Some(recalled.map(|recalled| recalled.to_string()))
        }))
    }

    /// Begins an answer from these removed messages, which must be in the order of the log.
    pub(crate) fn begin_from(
        &self,
        removed: Vec<Removed>,
        request: &RecallRequest,
    ) -> Result<Steps<'a>> {
        let recalled = match request {
            RecallRequest::Range { from, to, offset } => {
                self.range(&removed, (*from, *to), *offset)?
            }
            RecallRequest::Message { number, offset } => {
                self.message(&removed, *number, *offset)?
            }
            RecallRequest::Call { id, offset } => self.whole_result(id, *offset)?,
            RecallRequest::Search { query, offset } => return self.search(removed, query, *offset),
        };
        let mut found = Some(Recalled { request: request.clone(), ..recalled });
        Ok(Box::new(move || found.take()))
    }

    /// Returns the maximum bytes of all passages, including their headings.
    fn room(&self) -> usize {
        self.max_bytes.saturating_sub(INTRODUCTION)
    }

    fn range(
        &self,
        removed: &[Removed],
        (from, to): (Option<CheckpointId>, Option<CheckpointId>),
        offset: u64,
    ) -> Result<Recalled> {
        let begin = from.map_or(Ok(0), |id| self.bounds(removed, id).map(|bounds| bounds.begin))?;
        let end =
            to.map_or(Ok(u64::MAX), |id| self.bounds(removed, id).map(|bounds| bounds.end))?;
        if let (Some(from), Some(to)) = (from, to)
            && end <= begin
        {
            return Err(RecallError::Inverted { from, to });
        }
        let selected = removed.iter().filter(|removed| (begin..end).contains(&removed.number));
        let mut recalled = Recalled { found: selected.clone().count(), ..Recalled::default() };
        let mut room = self.room();
        for removed in selected.filter(|removed| removed.number >= offset) {
            let text = self.text(removed);
            let fits = text.len() + HEADING <= room;
            if !fits && !recalled.passages.is_empty() {
                recalled.next = Some(removed.number);
                break;
            }
            let end = piece_end(&text, 0, room.saturating_sub(HEADING));
            room = room.saturating_sub(end + HEADING);
            recalled.passages.push(passage(removed, &text, 0..end));
        }
        Ok(recalled)
    }

    fn message(&self, removed: &[Removed], number: u64, offset: u64) -> Result<Recalled> {
        let index = removed.binary_search_by_key(&number, |removed| removed.number).ok();
        let removed = index.and_then(|index| removed.get(index));
        let removed = removed.ok_or(RecallError::NotRemoved { number })?;
        self.piece(removed, offset, format!("message {number}"))
    }

    /// Returns a piece of the whole result of a call, from the latest event that holds one.
    fn whole_result(&self, id: &str, offset: u64) -> Result<Recalled> {
        let cut = self.log.events().iter().rev().find_map(|logged| {
            let Event::ResultCut(result) = &logged.event else { return None };
            (result.tool_use_id == *id).then_some((logged, result))
        });
        let Some((logged, result)) = cut else {
            return Err(RecallError::UnknownCall { id: quoted(id) });
        };
        let content = vec![ContentBlock::ToolResult((**result).clone())];
        let message = Message::new(Role::User, content);
        let number = self.log.arrivals_before(logged.seq);
        let whole = format!("the result of call {}", quoted(id));
        self.piece(&Removed { number, at: logged.at, message }, offset, whole)
    }

    /// Returns a piece of a message from an offset on. `whole` names the message in an error.
    fn piece(&self, removed: &Removed, offset: u64, whole: String) -> Result<Recalled> {
        let text = self.text(removed);
        let start = usize::try_from(offset).ok().filter(|start| *start < text.len());
        let beyond = RecallError::Beyond { offset, whole, len: text.len() };
        let start = border(&text, start.ok_or(beyond)?);
        let end = piece_end(&text, start, self.room() - HEADING);
        let next = (end < text.len()).then_some(end as u64);
        let passages = vec![passage(removed, &text, start..end)];
        Ok(Recalled { passages, found: 1, next, ..Recalled::default() })
    }

    #[cfg(not(feature = "recall"))]
    #[expect(clippy::unused_self, reason = "with the feature it searches")]
    fn search(&self, _: Vec<Removed>, _: &Text, _: u64) -> Result<Steps<'a>> {
        Err(RecallError::NoSearch)
    }

    #[cfg(feature = "recall")]
    fn search(&self, removed: Vec<Removed>, query: &Text, offset: u64) -> Result<Steps<'a>> {
        let (recall, terms) = (*self, Terms::of(query)?);
        let (calls, reading) = (HashSet::new(), Reading::default());
        let mut search = Search { removed, calls, terms, reading };
        let (query, skip) = (query.clone(), usize::try_from(offset).unwrap_or(usize::MAX));
        Ok(Box::new(move || {
            if search.read(&recall) {
                return None;
            }
            let request = RecallRequest::Search { query: query.clone(), offset };
            Some(Recalled { request, ..search.recalled(&recall, skip) })
        }))
    }

    /// Returns the rendered text of a message, without the heading of its role.
    fn text(&self, removed: &Removed) -> String {
        let mut text = String::new();
        self.write_text(removed, &mut text);
        text
    }

    /// Writes this text into an empty buffer.
    fn write_text(&self, removed: &Removed, text: &mut String) {
        let Some(redactor) = self.redactor else { return render(&removed.message, text) };
        render(&removed.message.redacted(redactor), text);
        // The rendered text shows names beside their values, so it is redacted too.
        *text = redacted_text(&mem::take(text).into(), redactor).to_string();
    }

    /// Returns the bounds of a checkpoint among the messages, removed or in the thread. If a
    /// checkpoint occurs more than once, the bounds give the widest range.
    fn bounds(&self, removed: &[Removed], id: CheckpointId) -> Result<CheckpointBounds> {
        let removed = removed
            .iter()
            .filter_map(|removed| CheckpointBounds::of(removed.number, &removed.message, id));
        let thread = self.log.replay();
        let numbers: Vec<Option<u64>> = self.log.numbers().collect();
        let kept = thread.iter().enumerate().filter_map(|(index, message)| {
            let mut numbers = numbers.iter().skip(index);
            match numbers.next().copied().flatten() {
                Some(number) => CheckpointBounds::of(number, message, id),
                // A message that a compaction inserted: the next one that was appended follows it.
                None => message.checkpoints().any(|(mark, _)| mark == id).then(|| {
                    let next = numbers.find_map(|number| *number).unwrap_or(u64::MAX);
                    CheckpointBounds { begin: next, end: next }
                }),
            }
        });
        let widest = removed.chain(kept).reduce(|one, other| CheckpointBounds {
            begin: one.begin.min(other.begin),
            end: one.end.max(other.end),
        });
        widest.ok_or(RecallError::UnknownCheckpoint { id })
    }
}

/// The steps of an answer: each call takes one step, and the last step returns the answer.
pub(crate) type Steps<'a> = Box<dyn FnMut() -> Option<Recalled> + Send + 'a>;

/// A search by words.
#[cfg(feature = "recall")]
#[derive(Debug)]
struct Search {
    removed: Vec<Removed>,
    /// The ids of the calls of recall in the messages read so far. Messages that only quote their
    /// results are skipped.
    calls: HashSet<Text>,
    terms: Terms,
    reading: Reading,
}

#[cfg(feature = "recall")]
impl Search {
    /// Reads a slice of the messages, and returns whether there is more to read.
    fn read(&mut self, recall: &Recall<'_>) -> bool {
        let Self { removed, calls, terms, .. } = self;
        self.reading.read(terms, removed.len(), |index, text| {
            let removed = removed.get(index);
            if let Some(removed) = removed.filter(|it| !search::is_quote(&it.message, calls)) {
                recall.write_text(removed, text);
            }
        })
    }

    /// Returns the best matches that fit into an answer, after those to skip.
    fn recalled(&mut self, recall: &Recall<'_>, skip: usize) -> Recalled {
        // One more than is shown, because `next` states whether there are more.
        let most = skip.saturating_add(search::SHOWN + 1);
        let (found, ranked) = mem::take(&mut self.reading).ranked(most);
        let mut recalled = Recalled { found, ..Recalled::default() };
        let mut room = recall.room();
        for (rank, matched) in ranked.into_iter().enumerate().skip(skip) {
            let Some(removed) = self.removed.get(matched.index) else { continue };
            let text = recall.text(removed);
            let bytes = self.terms.excerpt(&text, matched.bytes);
            if recalled.passages.len() == search::SHOWN || bytes.len() + HEADING > room {
                recalled.next = Some(rank as u64);
                break;
            }
            room -= bytes.len() + HEADING;
            recalled.passages.push(passage(removed, &text, bytes));
        }
        recalled
    }
}

/// The message numbers at which a range begins or ends that names this checkpoint.
#[derive(Clone, Copy)]
struct CheckpointBounds {
    /// The first message of a range that begins after the checkpoint.
    begin: u64,
    /// The first message after a range that ends with the checkpoint.
    end: u64,
}

impl CheckpointBounds {
    fn of(number: u64, message: &Message, id: CheckpointId) -> Option<Self> {
        let at = message
            .content
            .iter()
            .position(|block| matches!(block, ContentBlock::Checkpoint(mark) if mark.id == id))?;
        // Content after the checkpoint in the same message belongs to a range that begins with
        // the checkpoint.
        let mut after = message.content.iter().skip(at + 1);
        let has_content = after.any(|block| !matches!(block, ContentBlock::Checkpoint(_)));
        Some(Self { begin: number + u64::from(!has_content), end: number + 1 })
    }
}

fn passage(removed: &Removed, text: &str, bytes: Range<usize>) -> Passage {
    Passage {
        number: removed.number,
        at: removed.at,
        role: removed.message.role,
        author: removed.message.author.clone(),
        text: text.get(bytes.clone()).unwrap_or_default().to_owned(),
        bytes,
        len: text.len(),
    }
}
