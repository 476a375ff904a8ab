//! Composes the text of a fill from its parts.

use std::{cell::RefCell, rc::Rc};

use super::{
    account::{self, Step},
    earlier::{
        BEFORE, DETAILS, DONE, FAILED, GIVEN, LAST, TASK, full_opening, opening, recall_note,
    },
    needed::Needed,
    thread_texts::{Kind, ThreadTexts},
};
use crate::{
    message::{Message, Text},
    prose::named,
    strategy::{
        clip::{clip, is_note},
        snapshot::Snapshot,
        tail::Candidate,
        typed::Typed,
    },
    tokens::TokenCounter,
};

/// The percentage of the text that the account takes at most.
const ACCOUNT: u64 = 45;

/// The percentage of the text that what the user gave takes at most.
const GIVES: u64 = 30;

/// The account shows a step of up to this many bytes whole.
const SHORT: usize = 300;

/// Fewer tokens than this are not worth a section.
const LEAST: u64 = 40;

/// What a text is composed for.
pub(crate) struct Fill<'a> {
    /// The thread.
    pub(crate) thread: &'a Snapshot,
    /// What stays of it.
    pub(crate) candidate: &'a Candidate,
    /// What the user typed and the messages that stay do not say.
    pub(crate) typed: &'a Typed,
    /// The most tokens of the text.
    pub(crate) budget: u64,
    /// The tokens of the budget that went to more whole rounds, since the text does not need them.
    pub(crate) lent: u64,
    pub(crate) length: Length,
    /// The tokens of the list of what the user typed, and more if the other parts leave some.
    pub(crate) said: u64,
    /// The summary of a model, in place of an account that is made from the thread.
    pub(crate) account: Option<&'a str>,
    /// Counts the tokens.
    pub(crate) counter: &'a dyn TokenCounter,
}

/// How long a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// As long as what is needed.
    Needed,
    /// As long as the budget: the last steps take what is left.
    Full,
}

/// A thread that was read once for all texts that are tried.
#[derive(Debug)]
pub(crate) struct Reading {
    past: ThreadTexts,
    /// The steps of the account.
    steps: Vec<Step>,
    /// The lines that may be needed before the last cut that was tried.
    needed: RefCell<Option<Rc<Needed>>>,
}

impl Reading {
    /// Reads these messages.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let past = ThreadTexts::of(messages);
        Self { steps: account::steps(&past), past, needed: RefCell::default() }
    }

    /// The lines before a cut that may be needed.
    fn needed(&self, cut: usize) -> Rc<Needed> {
        let last = self.needed.take().filter(|last| last.cut() == cut);
        let needed = last.unwrap_or_else(|| Rc::new(Needed::of(&self.past, cut)));
        self.needed.replace(Some(Rc::clone(&needed)));
        needed
    }
}

/// Returns the text in at most its budget of tokens, or `None` if its first line exceeds it.
pub(crate) fn write(reading: &Reading, fill: &Fill<'_>) -> Option<String> {
    let cut = fill.candidate.cut;
    let needed = reading.needed(cut);
    let mut room = fill.budget;
    // The token count of the whole can exceed the sum of its parts, so retry with less room.
    for _ in 0..6 {
        let text = compose(reading, &needed, fill, room);
        let size = fill.counter.text(&text);
        if size <= fill.budget {
            return Some(text);
        }
        room = room.saturating_sub((size - fill.budget).max(room / 32 + 1));
    }
    None
}

struct Writer<'a> {
    text: String,
    left: u64,
    lent: u64,
    counter: &'a dyn TokenCounter,
}

impl Writer<'_> {
    /// Appends a section, if it has content and fits.
    fn section(&mut self, title: &str, body: &str) {
        let body = body.trim_end();
        if body.is_empty() {
            return;
        }
        let section = format!("\n\n{title}\n\n{body}");
        if let Some(left) = self.left.checked_sub(self.counter.text(&section)) {
            self.left = left;
            self.text.push_str(&section);
        }
    }

    /// This percentage of what is left and what is lent, as far as it is left, without the title.
    fn share(&self, percent: u64, title: &str) -> u64 {
        let all = self.left.saturating_add(self.lent);
        let share = (all.saturating_mul(percent) / 100).min(self.left);
        share.saturating_sub(self.counter.text(title) + 4)
    }
}

fn compose(reading: &Reading, needed: &Needed, fill: &Fill<'_>, budget: u64) -> String {
    let past = &reading.past;
    let Fill { candidate, counter, typed, .. } = *fill;
    let cut = candidate.cut;
    let text = fill.beginning(past, budget);
    let left = budget.saturating_sub(counter.text(&text));
    let mut said = typed.list(fill.said.min(left), counter);
    let mut first_said = counter.text(&said);
    let mut writer =
        Writer { text, left: left.saturating_sub(first_said), lent: fill.lent, counter };
    if let Some(task) = fill.task(past) {
        /// Fewer tokens of a task say nothing: the list then shows more of its sentences.
        const LEAST: u64 = 48;
        let most = writer.share(33, TASK);
        let is_legible = most >= LEAST || counter.text(&task) <= most;
        let task = clip(&task, most, counter);
        if is_legible && !is_note(&task) {
            writer.section(TASK, &quoted(&task));
        } else {
            said = typed.list(left / 10 * 9, counter);
            first_said = counter.text(&said);
            writer.left = left.saturating_sub(first_said);
        }
    }
    writer.section(GIVEN, &fill.given(past, writer.share(GIVES, GIVEN)));
    if fill.account.is_none() {
        write_account(reading, cut, &mut writer);
    }
    let written = writer.text.clone();
    let stays = |message| message >= cut || candidate.keeps_part_of(message);
    let mut known = past.names_of(stays);
    let system = fill.thread.system().iter().flat_map(Message::texts);
    let notes = fill.thread.notes().to_string();
    for text in system.map(Text::as_str).chain([written.as_str(), &*said, &*notes]) {
        past.names_in(text).for_each(|name| {
            known.insert(name);
        });
    }
    let (end, room) = (writer.text.len(), writer.left);
    let details = needed.write(past, known.clone(), writer.share(100, DETAILS), counter);
    writer.section(DETAILS, &details);
    let said = typed.list(counter.text(&said).saturating_add(writer.left), counter);
    let more = counter.text(&said).saturating_sub(first_said);
    writer.left = writer.left.saturating_sub(more);
    if fill.length == Length::Full {
        let steps = last_steps(past, cut, writer.share(97, LAST), counter);
        if !steps.is_empty() {
            // A line that these steps show need not stand above them.
            past.names_in(&steps).for_each(|name| {
                known.insert(name);
            });
            writer.text.truncate(end);
            writer.left = room.saturating_sub(more).saturating_sub(counter.text(&steps));
            let details = needed.write(past, known, writer.share(100, DETAILS), counter);
            writer.left = room.saturating_sub(more);
            writer.section(DETAILS, &details);
        }
        writer.section(LAST, &last_steps(past, cut, writer.share(97, LAST), counter));
    }
    let mut text = writer.text;
    if !said.is_empty() {
        text.push_str("\n\n");
        text.push_str(said.trim_end());
    }
    text
}

/// Writes what earlier summaries say, what was done, and what failed last.
fn write_account(reading: &Reading, cut: usize, writer: &mut Writer<'_>) {
    let Reading { past, steps, .. } = reading;
    let counter = writer.counter;
    let earlier = past.earlier(cut);
    let summary = earlier.iter().map(|it| it.summary.as_str()).filter(|it| !it.is_empty());
    let summary = summary.collect::<Vec<_>>().join("\n\n");
    if !summary.is_empty() {
        let summary = clip(&summary, writer.share(40, BEFORE), counter);
        writer.section(BEFORE, &quoted(&summary));
    }
    let done = account::write(account::before(steps, cut), writer.share(ACCOUNT, DONE), counter);
    writer.section(DONE, &done);
    writer.section(FAILED, &account::unmended(past, cut).concat());
}

/// The steps before the cut, the newest whole, as many as `room` tokens hold.
fn last_steps(past: &ThreadTexts, cut: usize, room: u64, counter: &dyn TokenCounter) -> String {
    // The account shows a short last step whole.
    newest(past.last_steps(cut).skip_while(|step| step.len() <= SHORT), room, counter)
}

/// Quotes texts, of which the newest comes first, in their order, as many as `room` tokens hold; of
/// the last that does not fit, head and tail.
fn newest(
    texts: impl Iterator<Item = impl AsRef<str>>,
    room: u64,
    counter: &dyn TokenCounter,
) -> String {
    let (mut shown, mut left) = (Vec::new(), room);
    for text in texts {
        if left <= LEAST {
            break;
        }
        let text = text.as_ref();
        // A text that is too long by itself is not copied.
        let whole = Some(text).filter(|text| counter.text(text) < left).map(quoted);
        let tokens = whole.as_ref().map_or(u64::MAX, |it| counter.text(it).saturating_add(1));
        if let Some(whole) = whole.filter(|_| tokens <= left) {
            left -= tokens;
            shown.push(whole);
            continue;
        }
        // Each line gets a mark of quotation.
        let marks = text.lines().count() as u64;
        shown.push(quoted(&clip(text, left.saturating_sub(marks.min(left / 4)), counter)));
        break;
    }
    shown.reverse();
    shown.join(">\n")
}

impl Fill<'_> {
    /// The summary of a model, or the first line of a digest.
    fn beginning(&self, past: &ThreadTexts, budget: u64) -> String {
        if let Some(account) = self.account {
            return account.trim().to_owned();
        }
        let messages = self.removed(past);
        let note = self.thread.recall_tool().map_or_else(String::new, |it| recall_note(it.name));
        let full = full_opening(messages) + &note;
        if self.counter.text(&full) > budget / 10 { opening(messages) } else { full }
    }

    /// The number of messages that the text replaces, with those of earlier digests.
    fn removed(&self, past: &ThreadTexts) -> usize {
        let (head, _) = self.thread.split_at(self.candidate.cut);
        let own = head.iter().enumerate().filter(|(index, message)| {
            !message.is_summary() && !self.candidate.keeps_part_of(*index)
        });
        let earlier = past.earlier(self.candidate.cut);
        earlier.iter().map(|it| it.messages).fold(own.count(), usize::saturating_add)
    }

    /// What the user quoted or pasted after the task, the newest whole, as much as `room` tokens hold.
    fn given(&self, past: &ThreadTexts, room: u64) -> String {
        let cut = self.candidate.cut;
        let earlier = past.earlier(cut);
        let typed = past.before(cut).iter().filter(|source| source.kind == Kind::Typed);
        // The task is shown by itself.
        let own = typed.skip(usize::from(past.begins_with_task(cut)));
        let own = own.filter(|source| !self.candidate.keeps_part_of(source.message));
        let all = earlier.iter().map(|it| it.given.as_str());
        let all: Vec<&str> = all.chain(own.map(|source| source.given.as_str())).collect();
        let all = all.into_iter().rev().filter(|text| !text.trim().is_empty());
        newest(all, room, self.counter)
    }

    /// The first text that the user typed, if it does not stay.
    fn task(&self, past: &ThreadTexts) -> Option<String> {
        let cut = self.candidate.cut;
        let earlier = past.earlier(cut);
        if let Some(told) = earlier.iter().find(|it| !it.task.is_empty()) {
            return Some(told.task.clone());
        }
        let first = past.before(cut).iter().find(|source| source.kind == Kind::Typed)?;
        let stays = self.candidate.keeps_part_of(first.message) || !past.begins_with_task(cut);
        let author = self.thread.messages().get(first.message);
        let author = author.and_then(|message| message.author.as_ref());
        (!stays).then(|| named(author, &first.text).into_owned())
    }
}

/// The text as a Markdown quotation.
fn quoted(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| match line.trim_end() {
        "" => ">\n".to_owned(),
        line => format!("> {line}\n"),
    });
    lines.collect()
}
