//! `digest`: replaces the old part of the thread with quotes and lists from it, without a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{facts::Facts, gather, write};
use crate::{retention::Statements, strategy::kit::*};

options! {
    /// Replaces the old part of the thread with a digest: quotes and lists extracted by fixed
    /// rules. Calls no model; the same thread gives the same digest.
    ///
    /// The digest is a user message with a summary in Markdown: the first request, earlier
    /// summaries, files and commands from tool inputs, errors, the model's last text, and what the
    /// user typed, statement by statement. The user's statements get a third of the budget before
    /// anything else, more if they are rules, have labels or give values, and also the room that
    /// the other sections leave. If they need most of the budget, the summary consists of them
    /// only. Lines over the budget are omitted, and a note gives the number of omitted lines other
    /// than the user's. A digest in the old part is parsed and merged with the later messages, so a
    /// digest of a digest is no longer than a single one and keeps the first request.
    ///
    /// The end of the thread and the newest user messages stay, as for
    /// [`Summarize`](super::super::Summarize). If the target of the brief leaves too little room,
    /// in this order: only the last user message is kept word for word; tool results at the end of
    /// the thread are [trimmed](crate::compact::trim()) to 40 lines and 4,000 bytes, then 12 and
    /// 1,000, 3 and 300, 1 and 100 (the last step includes errors); only messages that no cut can
    /// remove stay, trimmed in the same way; and if a next prompt follows, earlier user messages
    /// are removed too. So every target is met that leaves room for the last user message, for open
    /// calls and for one line.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*};
    ///
    /// let mut thread = vec![Message::user("Port the parser to Rust. Never touch the lexer.")];
    /// let done = |step| Message::assistant(format!("Step {step} of the port is done."));
    /// thread.extend((0..40).map(done));
    /// let thread = Snapshot::new(thread);
    /// let strategy = Digest { user_messages: 0, ..Digest::default() };
    /// let attempt = strategy.begin(&thread, &Brief::default());
    /// let Step::Proposed(proposal) = attempt.step() else { panic!("it needs no model") };
    /// let after = thread.accept(&proposal.plan, &Brief::default())?;
    /// assert_eq!(after.len(), 1 + 1 + 8);
    /// # Ok::<(), Rejection>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Digest {
        /// Number of messages to keep at the end, if they fit the target. More stay if no legal cut
        /// is near.
        pub messages: usize = 8,
        /// Upper limit for their tokens.
        pub tokens: Option<u64> = None,
        /// Number of user messages in the old part that stay word for word.
        pub user_messages: usize = 3,
        /// Upper limit for their tokens together. The newest one stays whatever its size.
        pub user_tokens: u64 = 4_000,
        /// Upper limit for the tokens of the digest.
        pub digest_tokens: u64 = 2_500,
    }
}

impl CompactionStrategy for Digest {
    fn name(&self) -> &str {
        "digest"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        attempt::propose(self.plan(thread, brief))
    }
}

impl Digest {
    fn plan(&self, thread: &Snapshot, brief: &Brief) -> Result<Plan> {
        let task = Task::new(thread, brief);
        let candidates = task.candidates(self.tail_request(&task))?;
        let is_over = task.missed_target().is_some();
        let job = DigestJob { task, most: self.digest_tokens, statements: thread.statements() };
        let mut failed = None;
        for candidate in &candidates {
            let worth = if is_over { Ok(()) } else { job.check_worth(candidate) };
            match worth.and_then(|()| job.plan(candidate)) {
                Ok(plan) => return Ok(plan),
                // The smallest candidate explains best why a target is missed, and the requested
                // one why nothing is removed from a thread within its target.
                Err(error) if is_over => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or_else(|| nothing("nothing was tried".to_owned()), Err)
    }

    fn tail_request(&self, task: &Task) -> TailRequest {
        let Task { thread, brief } = task;
        let target = task.missed_target().unwrap_or(u64::MAX);
        // The digest and the last user message must fit beside the tail.
        let last = thread.messages().iter().rev().find(|message| message.is_typed());
        let last = last.map_or(0, |message| thread.counter().message(message));
        let digest = self.digest_tokens.min(target / 3);
        let reserved = [digest, last, brief.reserve(), thread.stamp_tokens()];
        TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            user_messages: self.user_messages,
            user_tokens: self.user_tokens,
            reserved: reserved.into_iter().fold(0, u64::saturating_add),
            shrinks_when_asked: true,
        }
    }
}

struct DigestJob {
    task: Task,
    /// Upper limit for the tokens of the digest.
    most: u64,
    /// What the user typed.
    statements: Arc<Statements>,
}

impl DigestJob {
    /// Returns the plan that replaces everything before the cut, except the kept blocks, with a
    /// digest, and trims the messages after the cut.
    fn plan(&self, candidate: &Candidate) -> Result<Plan> {
        let Task { thread, brief } = &self.task;
        let (counter, before) = (thread.counter(), thread.size());
        // With a digest of one character, everything else has its final size.
        let frame = self.build(candidate, Some("."))?;
        let fixed = thread.tokens_after(&frame)?.saturating_sub(counter.text("."));
        let target = brief.target.unwrap_or(u64::MAX);
        let goes = self.removed_tokens(candidate, |_, _| true);
        let room = target.min(before.saturating_sub(1)).saturating_sub(fixed);
        // Reserve room for the lists after the digest: rules and the user's statements, which
        // matter more than the digest, and the addendum, which takes at most half of the room.
        let (whole, need) = (room, thread.typed_need(brief));
        let lists = need.min(whole / 4 * 3);
        let room = room.saturating_sub(brief.reserve().min(room / 2).max(lists));
        // A digest must not be longer than its source, apart from the first line.
        let facts = self.facts(candidate);
        let line = counter.text(&write::opening(facts.messages, false));
        let budget = self.most.min(room).min(goes.saturating_sub(1).max(line));
        let messages = thread.messages().iter().enumerate();
        let stay = messages.filter(|(at, _)| *at >= candidate.cut || candidate.keeps_part_of(*at));
        let stay = stay.map(|(_, message)| message);
        let mut typed = Typed::new(Arc::clone(&self.statements), thread, brief, stay);
        typed.skip(facts.short_request());
        // If little else fits beside the user's words, list only these: a heading and one more line
        // would cost some of them.
        let words = (need > lists).then(|| typed.list(whole.min(goes), counter));
        let digest = words
            .filter(|words| !words.is_empty())
            .or_else(|| write::write(&facts, &typed, budget, counter))
            .filter(|_| goes > 0);
        let plan = match &digest {
            Some(digest) => self.build(candidate, Some(digest))?,
            // Nothing is removed: this candidate only trims.
            None if goes == 0 => self.build(candidate, None)?,
            None => return self.no_room(candidate, fixed),
        };
        if plan.messages_after() == 0 && brief.next_prompt.is_none() {
            let reason = "all that it holds are reminders and reasoning, and nothing would be left";
            return nothing(reason.to_owned());
        }
        let after = thread.tokens_after(&plan)?;
        if after > target || after >= before {
            return self.no_room(candidate, after);
        }
        Ok(plan)
    }

    fn build(&self, candidate: &Candidate, digest: Option<&str>) -> Result<Plan> {
        let insert = digest
            .filter(|_| candidate.cut > 0)
            .map(|text| Message::summary(Role::User, self.task.summary(text)));
        candidate.plan(&self.task, insert.into_iter().collect())
    }

    fn facts(&self, candidate: &Candidate) -> Facts {
        let (head, _) = self.task.thread.split_at(candidate.cut);
        let mut facts = gather::gather(head, |message| candidate.keeps_part_of(message));
        // Active rules are appended when the plan is settled, and revoked ones must not come back.
        facts.later.items.retain(|line| self.task.thread.rules().find(line).is_none());
        facts
    }

    /// The tokens of the blocks before the cut that are not kept and for which `counts` is `true`.
    /// `counts` gets the index of the message and the block.
    fn removed_tokens(
        &self,
        candidate: &Candidate,
        counts: impl Fn(usize, &ContentBlock) -> bool,
    ) -> u64 {
        let mut tokens: u64 = 0;
        let (head, _) = self.task.thread.split_at(candidate.cut);
        for (message, parts) in head.iter().enumerate() {
            for (block, content) in parts.content.iter().enumerate() {
                if !candidate.keeps(message, block) && counts(message, content) {
                    tokens = tokens.saturating_add(self.task.thread.counter().block(content));
                }
            }
        }
        tokens
    }

    /// Rejects a digest of little more than an earlier summary.
    fn check_worth(&self, candidate: &Candidate) -> Result<()> {
        let (head, _) = self.task.thread.split_at(candidate.cut);
        // User messages before a summary were kept when it was made, so they are not new.
        let last = head.iter().rposition(Message::is_summary).unwrap_or(0);
        let goes = self.removed_tokens(candidate, |index, block| {
            let kept_once = index < last && head.get(index).is_some_and(Message::is_typed);
            !is_marker(block) && !kept_once
        });
        if goes > tail::MIN_TOKENS {
            return Ok(());
        }
        nothing(format!(
            "about {goes} tokens before the end are in no summary, too few to be worth it"
        ))
    }

    fn no_room(&self, candidate: &Candidate, stays: u64) -> Result<Plan> {
        let messages = self.task.thread.messages();
        let counter = self.task.thread.counter();
        let (_, end) = self.task.thread.split_at(candidate.cut);
        let typed = candidate
            .kept
            .iter()
            .filter_map(|range| messages.get(range.start.message)?.content.get(range.start.block));
        let typed: u64 = typed.map(|block| counter.block(block)).fold(0, u64::saturating_add);
        let most = self.task.brief.target.unwrap_or(self.task.thread.size());
        let mut parts = Vec::new();
        if !end.is_empty() {
            let tokens = counter.messages(end);
            parts.push(format!("the last {}, which no cut can remove, have {tokens}", end.len()));
        }
        if typed > 0 {
            parts.push(format!("the user's newest, which stay word for word, have {typed}"));
        }
        nothing(format!(
            "about {stays} tokens of messages would stay, and the target is {most}: {}. A larger target \
             or window would help, or shorter messages",
            parts.join("; ")
        ))
    }
}
