//! The notes of the agent in a compacted thread.
//!
//! If a plan leaves messages that do not show every note, all notes are listed at the end of its last
//! summary. A plan without a summary that removes a note gets a summary with the list alone.

use std::{borrow::Cow, collections::HashSet};

use super::{
    brief::Brief,
    full_summary::with_summaries,
    lists::{joined, last_summary},
    proposal::Proposal,
    rejection::Rejection,
    snapshot::Snapshot,
};
use crate::{
    compact::Plan,
    message::{ContentBlock, Message, Summary, Text},
    notes::{self, Note, tool},
};

/// Upper limit for the tokens of the list.
const NOTES_TOKENS: u64 = 6_000;

/// The share of a target that the list takes at most: a quarter.
const SHARE: u64 = 4;

/// Tokens that stay free between the list and the target.
const MARGIN: u64 = 8;

impl Snapshot {
    /// The tokens that strategies leave free for the list of notes.
    pub(super) fn notes_need(&self, brief: &Brief) -> u64 {
        match self.notes_list(brief).as_str() {
            "" => 0,
            list => self.counter().text(list).saturating_add(MARGIN),
        }
    }

    /// Returns the messages without the calls that wrote notes and their results, in their places: the
    /// list of notes says what still holds of them.
    pub(super) fn without_note_calls<'m>(&self, messages: &'m [Message]) -> Cow<'m, [Message]> {
        if self.notes().is_empty() {
            return messages.into();
        }
        let mut ids = HashSet::new();
        let bare = messages.iter().map(|message| {
            let calls = message.tool_uses().filter(|call| call.name == *tool::NOTES);
            ids.extend(calls.map(|call| call.id.clone()));
            let is_notes = |block: &ContentBlock| {
                if let ContentBlock::ToolUse(call) = block {
                    return ids.contains(&call.id);
                }
                matches!(block, ContentBlock::ToolResult(it) if ids.contains(&it.tool_use_id))
            };
            if !message.content.iter().any(is_notes) {
                return message.clone();
            }
            let rest = message.content.iter().filter(|block| !is_notes(block));
            message.with_content(rest.cloned().collect())
        });
        bare.collect()
    }

    fn notes_list(&self, brief: &Brief) -> String {
        let share = brief.target.map_or(u64::MAX, |target| target / SHARE);
        notes::titled(self.notes(), NOTES_TOKENS.min(share), self.counter())
    }

    /// Settles a proposal by `settle`, and lists the notes that it removes.
    pub(super) fn settled_with_notes(
        &self,
        proposal: Proposal,
        brief: &Brief,
        settle: impl Fn(Proposal, &Brief) -> Result<Proposal, Rejection>,
    ) -> Result<Proposal, Rejection> {
        if self.notes().is_empty() {
            return settle(proposal, brief);
        }
        // The list is made anew, so that what stands under its title comes from the notes alone.
        let plan = proposal.plan.clone().with_new_messages(|message| {
            *message = with_summaries(message, |summary| {
                let own = notes::without(&summary.text);
                let is_bare = own.trim().is_empty() && notes::is_list(&summary.text, self.notes());
                let changes = own.len() < summary.text.len() && !is_bare;
                changes.then(|| Summary { text: own.trim_end().into(), ..summary.clone() })
            });
        });
        let proposal = Proposal { plan, ..proposal };
        let need = self.notes_need(brief);
        let within =
            Brief { target: brief.target.map(|it| it.saturating_sub(need)), ..brief.clone() };
        let settled = match settle(proposal.clone(), &within) {
            Err(Rejection::OverTarget { .. }) => settle(proposal, brief)?,
            settled => settled?,
        };
        Ok(self.with_notes_listed(settled, brief))
    }

    /// Returns the proposal with the list of notes in its last summary, or in one of its own. The
    /// list counts the notes for which there is no room; without room for that it is left out.
    fn with_notes_listed(&self, proposal: Proposal, brief: &Brief) -> Proposal {
        let Ok(after) = proposal.plan.after(self.messages()) else { return proposal };
        let unstated = |messages: &[Message]| {
            let stated = Stated::of(messages);
            self.notes().iter().filter(|note| !stated.shows(note)).count()
        };
        let missing = unstated(&after);
        // A plan without a summary gets one only if it removes a note.
        let summary = last_summary(&proposal.plan).cloned();
        if missing == 0 || summary.is_none() && missing <= unstated(self.messages()) {
            return proposal;
        }
        let whole = self.notes_list(brief);
        let tokens = |text: &Text| self.counter().text(text);
        let listed = summary.as_ref().map_or(0, |summary| {
            tokens(summary).saturating_sub(tokens(&notes::without(summary).into()))
        });
        let most = brief.target.unwrap_or(u64::MAX).min(self.size().saturating_sub(1));
        let room = most.saturating_sub(self.counter().messages(&after));
        let stamp = if summary.is_none() { self.stamp_tokens() } else { 0 };
        let room = room.saturating_add(listed).saturating_sub(stamp).saturating_sub(MARGIN);
        let short = notes::titled(self.notes(), room, self.counter());
        let mut lists = [whole, short].into_iter().filter(|list| !list.is_empty());
        let plan = lists.find_map(|list| {
            let plan = self.with_list(&proposal.plan, summary.as_ref(), list, brief)?;
            self.accept(&plan, brief).is_ok().then_some(plan)
        });
        match plan {
            Some(plan) => self.with_plan(proposal, plan, brief),
            None => proposal,
        }
    }

    fn with_list(
        &self,
        plan: &Plan,
        summary: Option<&Text>,
        list: String,
        brief: &Brief,
    ) -> Option<Plan> {
        let Some(summary) = summary else { return self.with_own_summary(plan, list, brief) };
        Some(plan.clone().with_last_summary(joined(&notes::without(summary), &list)))
    }
}

/// The notes that messages show: in lists of summaries, and in calls of the tool.
struct Stated<'m> {
    lists: Vec<&'m str>,
    /// The notes that calls write, in order.
    calls: Vec<Note>,
}

impl<'m> Stated<'m> {
    fn of(messages: &'m [Message]) -> Self {
        let calls = messages.iter().flat_map(Message::tool_uses);
        let calls = calls.filter(|call| call.name == *tool::NOTES).filter_map(|call| {
            tool::written(&call.input.json().ok()?.to_value().ok()?).ok().flatten()
        });
        let summaries = messages.iter().flat_map(Message::summaries);
        Self { lists: summaries.map(|summary| &*summary.text).collect(), calls: calls.collect() }
    }

    /// Whether the last call for the note wrote it as it is, or a list has it and no call.
    fn shows(&self, note: &Note) -> bool {
        match self.calls.iter().rev().find(|call| call.name == note.name) {
            Some(call) => call.text == note.text,
            None => {
                let entry = note.to_string();
                self.lists.iter().any(|list| list.contains(&entry))
            }
        }
    }
}
