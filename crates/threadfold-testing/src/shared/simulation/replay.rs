//! A second, simple replay of the stored events.
//!
//! It uses nothing of the crate's own replay: plans are applied message by message, and an undo
//! restores a copy of the earlier messages.

use threadfold::{
    ContentBlock, Message, Plan,
    compact::{Insert, Splice},
    log::Event,
    message::CompactionId,
};

/// The thread, and the thread before each standing compaction.
#[derive(Debug, Default)]
pub struct Replay {
    messages: Vec<Message>,
    before: Vec<Before>,
    /// The latest compaction, standing or not.
    last: Option<CompactionId>,
}

/// The thread before a compaction, and its length after it.
#[derive(Debug)]
struct Before {
    id: CompactionId,
    messages: Vec<Message>,
    after: usize,
}

impl Replay {
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether this compaction was carried out, whether it was undone since or not.
    pub fn has_seen(&self, id: CompactionId) -> bool {
        self.last.is_some_and(|last| id <= last)
    }

    /// Applies the next event; an error if it makes no sense.
    pub fn take(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::MessageAppended(message) => self.messages.push(message.clone()),
            Event::Truncated { len, .. } => self.messages.truncate(*len),
            Event::Compacted(record) => {
                let messages = carried_out(&record.plan, &self.messages)?;
                let after = messages.len();
                let messages = std::mem::replace(&mut self.messages, messages);
                self.before.push(Before { id: record.id, messages, after });
                self.last = self.last.max(Some(record.id));
            }
            Event::CompactionUndone { id } => self.undo(*id)?,
            Event::SystemPromptSet { .. }
            | Event::LocalNotice { .. }
            | Event::CompactionFailed(_)
            | Event::RuleAdded { .. }
            | Event::RuleRevoked { .. }
            | Event::NoteWritten { .. }
            | Event::Host { .. }
            | Event::ResultCut(_)
            | Event::Spent { .. } => {}
            Event::Malformed { .. } | _ => {
                return Err(format!("{event:?}"));
            }
        }
        Ok(())
    }

    fn undo(&mut self, id: CompactionId) -> Result<(), String> {
        let Some(before) = self.before.pop().filter(|before| before.id == id) else {
            return Err(format!("compaction {id} is taken back, which is not the last one"));
        };
        let since = self.messages.drain(before.after.min(self.messages.len())..);
        let since: Vec<Message> = since.map(marked).collect();
        self.messages = before.messages;
        self.messages.extend(since);
        Ok(())
    }
}

fn carried_out(plan: &Plan, before: &[Message]) -> Result<Vec<Message>, String> {
    if plan.messages_before() != before.len() {
        return Err(format!("a plan for {} of {}", plan.messages_before(), before.len()));
    }
    let mut messages = Vec::new();
    let mut next = 0;
    for splice in plan.splices() {
        messages.extend(before.get(next..splice.at.start).ok_or("splices overlap")?.to_vec());
        for place in 0..splice.insert.len() {
            messages.extend(inserted(splice, place, before));
        }
        next = splice.at.end;
    }
    messages.extend(before.get(next..).ok_or("a splice is out of range")?.to_vec());
    Ok(messages)
}

/// Returns the message that one entry of a splice inserts.
fn inserted(splice: &Splice, place: usize, before: &[Message]) -> Option<Message> {
    let (message, blocks) = match splice.insert.get(place)? {
        Insert::Message { message } => return Some(message.clone()),
        Insert::Part { message, blocks } => (*message, blocks),
    };
    let source = before.get(message)?;
    let kept = blocks.iter().filter_map(|block| source.content.get(*block as usize)).cloned();
    let mut part = source.clone();
    part.make_mut().content = kept.collect();
    // The usage of an answer stays on its last part.
    let later = splice.insert.get(place + 1..).unwrap_or_default().iter();
    let same =
        |insert: &Insert| matches!(insert, Insert::Part { message: of, .. } if *of == message);
    if later.clone().any(same) {
        (part.make_mut().usage, part.make_mut().stop_reason) = (None, None);
    }
    Some(marked(part))
}

/// Marks reasoning that stays after an edit.
fn marked(mut message: Message) -> Message {
    if message.content.iter().any(ContentBlock::is_reasoning) {
        message.prefix_rewritten = true;
    }
    message
}
