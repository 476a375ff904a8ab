//! The judge: checks the promises with what it saw itself, and with a replay of its own.

use std::collections::BTreeMap;

use threadfold::{
    EventLog, Message, Request, legality,
    log::{Event, LoggedEvent},
    message::{CompactionId, ThreadId},
    store::Lease,
};

use super::{
    fault::{Fault, Promise},
    replay::Replay,
};

/// What the judge knows of all threads.
#[derive(Debug, Default)]
pub(super) struct Judge {
    threads: BTreeMap<ThreadId, Seen>,
}

/// What the judge knows of a thread.
#[derive(Debug, Default)]
struct Seen {
    /// The place in the order in which the threads were stored. Ids may be random.
    number: usize,
    events: u64,
    replay: Replay,
    /// Texts that a session answered, each of which must be in the log once.
    acknowledged: Vec<String>,
    /// The lease that was acquired last.
    lease: Option<Lease>,
}

impl Judge {
    /// A lease was acquired. Returns whether it was taken over from another worker.
    pub(super) fn acquired(&mut self, lease: &Lease) -> Result<bool, Fault> {
        let seen = self.thread(&lease.thread);
        let before = seen.lease.replace(lease.clone());
        match before {
            Some(before) if before.fence >= lease.fence => {
                let what = format!("lease {} follows lease {}", lease.fence, before.fence);
                Err(Promise::OneWriter.broken(what))
            }
            Some(before) => Ok(before.worker != lease.worker),
            None => Ok(false),
        }
    }

    /// Whether no later lease of the thread was acquired.
    pub(super) fn is_newest(&self, lease: &Lease) -> bool {
        let newest = self.threads.get(&lease.thread).and_then(|seen| seen.lease.as_ref());
        newest.is_none_or(|newest| newest.fence <= lease.fence)
    }

    /// Events were stored. Returns the number of the thread.
    pub(super) fn stored(
        &mut self,
        thread: &ThreadId,
        lease: Option<&Lease>,
        events: &[LoggedEvent],
    ) -> Result<usize, Fault> {
        if let Some(lease) = lease.filter(|lease| !self.is_newest(lease)) {
            let what = format!(
                "{} wrote {} events into {thread} under lease {}, after a later one was acquired",
                lease.worker,
                events.len(),
                lease.fence
            );
            return Err(Promise::OneWriter.broken(what));
        }
        let seen = self.thread(thread);
        for event in events {
            if event.seq != seen.events {
                let what = format!("event {} follows {} events", event.seq, seen.events);
                return Err(Promise::Kept.broken(what));
            }
            let taken = seen.replay.take(&event.event);
            taken.map_err(|what| Promise::Kept.broken(format!("event {}: {what}", event.seq)))?;
            seen.events += 1;
        }
        let found = legality::violations(seen.replay.messages());
        match found.first() {
            Some(violation) => Err(Promise::Legal.broken(format!("stored thread: {violation}"))),
            None => Ok(seen.number),
        }
    }

    /// Compares a thread with what is stored, if all of its events are.
    pub(super) fn same(&self, log: &EventLog, messages: &[Message]) -> Result<(), Fault> {
        if log.replay() != messages {
            return Err(Promise::Kept.broken("the log does not come to the thread"));
        }
        match self.threads.get(log.thread_id()) {
            Some(seen) if seen.events == log.len() => differ(messages, seen.replay.messages())
                .map_or(Ok(()), |what| Err(Promise::Undone.broken(what))),
            Some(_) | None => Ok(()),
        }
    }

    /// Compares a request with the stored thread.
    pub(super) fn asked(&self, thread: &ThreadId, request: &Request) -> Result<(), Fault> {
        let Some(seen) = self.threads.get(thread) else { return Ok(()) };
        differ(&request.messages, seen.replay.messages())
            .map_or(Ok(()), |what| Err(Promise::Kept.broken(format!("a request: {what}"))))
    }

    /// A session answered this text.
    pub(super) fn acknowledged(&mut self, thread: &ThreadId, text: &str) {
        self.thread(thread).acknowledged.push(text.to_owned());
    }

    /// A session reported that this compaction is complete: it must be stored.
    pub(super) fn completed(&self, thread: &ThreadId, id: CompactionId) -> Result<(), Fault> {
        match self.threads.get(thread).is_some_and(|seen| seen.replay.has_seen(id)) {
            true => Ok(()),
            false => {
                let what = format!("{id} of {thread} was reported as complete and is not stored");
                Err(Promise::Kept.broken(what))
            }
        }
    }

    /// Checks a loaded log: it has everything that was acknowledged, once.
    pub(super) fn loaded(&self, thread: &ThreadId, events: &[LoggedEvent]) -> Result<(), Fault> {
        let Some(seen) = self.threads.get(thread) else { return Ok(()) };
        let texts: Vec<&str> = events.iter().flat_map(texts).collect();
        for expected in &seen.acknowledged {
            let found = texts.iter().filter(|text| **text == expected).count();
            if found != 1 {
                let what = format!("{expected:?} was answered and is {found} times in the log");
                return Err(Promise::Kept.broken(what));
            }
        }
        Ok(())
    }

    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_by_key(|(_, seen)| seen.number);
        threads.into_iter().map(|(thread, _)| thread.clone()).collect()
    }

    fn thread(&mut self, thread: &ThreadId) -> &mut Seen {
        let number = self.threads.len();
        let new = || Seen { number, ..Seen::default() };
        self.threads.entry(thread.clone()).or_insert_with(new)
    }
}

/// The texts of an appended message.
fn texts(event: &LoggedEvent) -> impl Iterator<Item = &str> {
    let appended =
        if let Event::MessageAppended(message) = &event.event { Some(message) } else { None };
    appended.into_iter().flat_map(|message| message.texts()).map(AsRef::as_ref)
}

/// How messages differ from the expected ones, if they do.
fn differ(found: &[Message], expected: &[Message]) -> Option<String> {
    let same = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
    (same < found.len().max(expected.len())).then(|| {
        let at = |thread: &[Message]| format!("{:.300}", format!("{:?}", thread.get(same)));
        format!(
            "{} messages where {} are stored; at {same}: {}, stored: {}",
            found.len(),
            expected.len(),
            at(found),
            at(expected)
        )
    })
}

/// Checks a request by itself: it is legal, and its body has the rules if it has a summary.
pub(super) fn check(request: &Request, body: &str, rules: &[&str]) -> Result<(), Fault> {
    if let Some(violation) = legality::violations(&request.messages).first() {
        return Err(Promise::Legal.broken(violation));
    }
    if let Some(open) = request.messages.last().and_then(|message| message.tool_uses().next()) {
        let what = format!("call {} at the end has no result", open.id);
        return Err(Promise::Legal.broken(what));
    }
    let has_summary = request.messages.iter().any(Message::is_summary);
    match rules.iter().find(|rule| has_summary && !body.contains(*rule)) {
        Some(rule) => {
            let summaries: Vec<_> = request.messages.iter().filter(|it| it.is_summary()).collect();
            Err(Promise::Ruled.broken(format!("{rule:?} is missing beside {summaries:.600?}")))
        }
        None => Ok(()),
    }
}
