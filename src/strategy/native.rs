//! `native`: the provider compacts the old part itself, in a form that only the provider can read.
//!
//! The provider's blocks come first in the thread, followed by this crate's summary of the same
//! messages: a digest, and what settling adds to every summary (rules, the user's statements,
//! facts). The blocks are opaque, so this summary is what an audit judges, and what another
//! provider reads: its codec omits the blocks. The messages themselves stay in the log, for an undo
//! and for recall.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::{Ask, Retries},
    brief::Brief,
    contract::CompactionStrategy,
    digest,
    error::{Result, StrategyError},
    proposal::{ModelRole, Proposal},
    snapshot::Snapshot,
    tail::{Candidate, TailRequest},
    view::View,
};
use crate::{
    message::{Answer, ContentBlock, Message, Opaque, Request, Text},
    turn::is_meant,
};

options! {
    /// Replaces the old part of the thread with the provider's own compaction of it, followed by a
    /// digest that every provider can read.
    ///
    /// It fails if the model's adapter does not offer [such
    /// compactions](crate::model::Model::compact_natively), so it is usually the first rung of a
    /// [`Ladder`](super::Ladder). The user's messages before the kept end are listed in the digest;
    /// only the newest one stays as a message, after the compaction, because Anthropic demands that
    /// its block comes first.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Message, Role, message::*, strategy::*};
    ///
    /// let question = |n| Message::user(format!("Question {n}? {}", "Word ".repeat(30)));
    /// let answer = |n| [question(n), Message::assistant("Answer.")];
    /// let thread = Snapshot::new((0..8).flat_map(answer).collect::<Vec<_>>());
    /// let view = View::new(thread, Brief::default());
    ///
    /// let block = r#"{"type":"compaction","content":"They talked.","signature":"c2ln"}"#;
    /// let block = Opaque::new("anthropic-messages", Json::parse(block)?);
    /// let mut provider = |call: &ModelCall| {
    ///     assert_eq!((call.model, call.request.messages.len()), (ModelRole::Native, 12));
    ///     let answer = Message::new(Role::Assistant, vec![block.clone().into()]);
    ///     Ok(Answer::new(answer, StopReason::PauseTurn, None))
    /// };
    /// let strategy = Native { messages: 4, ..Native::default() };
    /// let proposal = block_on(strategy.propose(&view, &mut Ask::new(&mut provider)))?;
    /// let after = view.thread.accept(&proposal.plan, &view.brief)?;
    /// assert!(after[0].is_summary() && after.len() == 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Native {
        /// Number of messages to keep at the end, if they fit the target. More stay if no legal cut
        /// is near.
        pub messages: usize = 8,
        /// Upper limit for their tokens.
        pub tokens: Option<u64> = None,
        /// Upper limit for the tokens of the provider's answer, its reasoning included.
        pub output_tokens: u64 = 8_192,
        /// Upper limit for the tokens of the digest.
        pub digest_tokens: u64 = 1_000,
    }
}

#[async_trait]
impl CompactionStrategy for Native {
    fn name(&self) -> &str {
        "native"
    }

    async fn propose(&self, task: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        let candidates = self.candidates(task)?;
        let head = candidates.first().map_or(0, |candidate| candidate.cut);
        let request = self.request(&task.thread, head)?;
        let retries = Retries { most: 0, repeats_without_calls: false, ..Retries::default() };
        let answer = ask.question_with(ModelRole::Native, request, retries, |_| None).await?;
        let blocks = compaction(&answer)?;
        let note = note(&blocks, head);
        let first = self.message(task, head, blocks);
        let plan = task.first_within_target(&candidates, |candidate| {
            candidate.plan_with_first(task, first.clone())
        })?;
        Ok(Proposal { notes: vec![note], ..Proposal::new(plan) })
    }
}

impl Native {
    /// Returns the candidates that are worth a call and share the cut of the first of them, because
    /// the provider compacts up to one cut.
    fn candidates(self, task: &View) -> Result<Vec<Candidate>> {
        let View { thread, brief } = task;
        let target = task.missed_target().unwrap_or(u64::MAX);
        let expected = self.output_tokens.min(target / 4);
        let reserved = [expected, self.digest(brief), brief.reserve(), thread.stamp_tokens()];
        let request = TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            reserved: reserved.into_iter().fold(0, u64::saturating_add),
            shrinks_when_asked: true,
            ..TailRequest::default()
        };
        let mut candidates = task.worthwhile(request)?;
        let cut = candidates.first().map(|candidate| candidate.cut);
        candidates.retain(|candidate| Some(candidate.cut) == cut);
        Ok(candidates)
    }

    /// The request begins like those of the conversation, so the provider's prompt cache applies.
    fn request(self, thread: &Snapshot, head: usize) -> Result<Request> {
        let head: Vec<Message> = thread.messages().iter().take(head).cloned().collect();
        let request = Request {
            system: thread.system().clone(),
            tools: thread.tools().clone(),
            max_output: Some(self.output_tokens),
            ..Request::new(head)
        };
        thread.with_answer_room(request)
    }

    /// Returns the message that replaces the head of the thread.
    fn message(self, task: &View, head: usize, blocks: Vec<Opaque>) -> Message {
        let (messages, _) = task.thread.split_at(head);
        // A digest is limited in bytes here; a token has about four bytes.
        let bytes =
            usize::try_from(self.digest(&task.brief).saturating_mul(4)).unwrap_or(usize::MAX);
        let text = digest::of(messages, bytes).filter(|text| !text.trim().is_empty());
        let text = text.unwrap_or_else(|| format!("{head} messages were compacted."));
        let is_last = head == task.thread.messages().len();
        let summary = task.summary_message(task.summary(text), is_last);
        let blocks = blocks.into_iter().map(ContentBlock::from);
        Message::new(summary.role, blocks.chain(summary.content.iter().cloned()).collect())
    }

    fn digest(self, brief: &Brief) -> u64 {
        self.digest_tokens.min(brief.target.unwrap_or(u64::MAX) / 4)
    }
}

/// Returns the opaque blocks of an answer, at least one of which is a compaction. OpenAI also
/// returns messages of the user as such blocks and requires all of them in later requests.
fn compaction(turn: &Answer) -> Result<Vec<Opaque>> {
    let blocks = turn.message.content.iter().filter_map(|block| {
        if let ContentBlock::Opaque(opaque) = block { Some(opaque.clone()) } else { None }
    });
    let blocks: Vec<Opaque> = blocks.collect();
    if blocks.iter().any(Opaque::is_compaction) {
        return Ok(blocks);
    }
    let stop_reason = turn.stop_reason.clone();
    match is_meant(&stop_reason) {
        true => Err(StrategyError::NotNative),
        false => Err(StrategyError::Incomplete { stop_reason }),
    }
}

fn note(blocks: &[Opaque], head: usize) -> Text {
    let codec = blocks.iter().find(|block| block.is_compaction()).map(|block| block.codec.as_str());
    let codec = codec.unwrap_or_default();
    format!(
        "The provider ({codec}) compacted {head} messages itself. Its block cannot be looked into, \
         so the audit judges only the text beside it."
    )
    .into()
}
