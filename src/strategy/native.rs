//! `native`: the provider compacts the old part itself, in a form that only the provider can read.
//!
//! The provider's blocks come first in the thread, in one message with this crate's account of the
//! same messages: a digest, what settling adds to every summary (rules, the user's statements,
//! facts), and the user's newest text if it is one of these messages. The provider that made the
//! blocks gets them alone and unchanged: its codec omits the account. Another provider gets the
//! account: its codec omits the blocks, which are opaque to it, and so they are to an audit. The
//! messages themselves stay in the log, for an undo and for recall.
//!
//! Everything after the blocks stays as it is, reminders and results included, and nothing is
//! inserted. Under these conditions Anthropic and OpenAI keep the reasoning of the messages that
//! follow (Anthropic, "Compaction and thinking blocks", November 2026; OpenAI, "Keep the prefix
//! unchanged", 18 November 2026), so it is not [marked](crate::Plan::with_reasoning_marked). The
//! conditions also demand the same model, system prompt and tools, which are the host's, and that
//! the first message after the block has another role than the last one that it stands for.
//!
//! xAI compacts too (`CompactContext` of xai-sdk 1.21), but only over gRPC. No dialect of this crate
//! has that form, so a model of xAI has no native compaction here.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::{Ask, ModelCall, Retries},
    brief::Brief,
    contract::CompactionStrategy,
    digest,
    error::{Result, StrategyError},
    instructions::FOCUS,
    proposal::{ModelRole, Proposal},
    snapshot::Snapshot,
    tail::TailRequest,
    view::View,
};
use crate::{
    compact::{Insert, Plan, Splice},
    message::{Answer, ContentBlock, Message, Opaque, Request, Role, Text},
    turn::is_meant,
};

options! {
    /// Replaces the old part of the thread with the provider's own compaction of it, beside a digest
    /// that every other provider reads. The messages after it stay unchanged, so the provider keeps
    /// their reasoning.
    ///
    /// The user's instructions for the compaction become its prompt where the provider takes one
    /// (Anthropic); otherwise a note states that the provider did not get them.
    ///
    /// It fails if the model's adapter does not offer [such
    /// compactions](crate::model::Model::compact_natively), so it is usually the first rung of a
    /// [`Ladder`](super::Ladder). The user's messages before the kept end are listed in the digest,
    /// and the newest one stands after it word for word.
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
        /// is near, and if the user's newest message is before them and fits.
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
        let head = task.untouched_cut(self.tail(task))?;
        let call = ModelCall {
            instructions: task.brief.reason.instructions().map(prompt),
            ..ModelCall::new(ModelRole::Native, self.request(&task.thread, head)?)
        };
        let retries = Retries { most: 0, repeats_without_calls: false, ..Retries::default() };
        let asked = call.instructions.is_some();
        let answer = ask.call_with(call, retries, |_| None).await?;
        let blocks = compaction(&answer)?;
        let notes = notes(&blocks, head, asked);
        let mut message = self.message(task, head, blocks);
        message.make_mut().origin.clone_from(&answer.message.origin);
        let splice = Splice { at: 0..head, insert: vec![Insert::Message { message }] };
        let plan = Plan::from_splices(task.thread.messages().len(), vec![splice]);
        Ok(Proposal { notes, ..Proposal::new(task.thread.stamped(plan, &task.brief)) })
    }
}

impl Native {
    /// How much of the end is to stay.
    fn tail(self, task: &View) -> TailRequest {
        let View { thread, brief } = task;
        let target = task.missed_target().unwrap_or(u64::MAX);
        let expected = self.output_tokens.min(target / 4);
        let reserved = [expected, self.digest(brief), brief.reserve(), thread.stamp_tokens()];
        TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            reserved: reserved.into_iter().fold(0, u64::saturating_add),
            shrinks_when_asked: true,
            ..TailRequest::default()
        }
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
        let blocks = blocks.into_iter().map(ContentBlock::from);
        let summary = ContentBlock::from(task.summary(text));
        let newest = newest_typed(task, head);
        let typed = newest.into_iter().flat_map(Message::typed_content).cloned();
        let message = Message::new(Role::User, blocks.chain([summary]).chain(typed).collect());
        let author = newest.and_then(|newest| newest.author.clone());
        message.by_author(author)
    }

    fn digest(self, brief: &Brief) -> u64 {
        self.digest_tokens.min(brief.target.unwrap_or(u64::MAX) / 4)
    }
}

/// Returns the opaque blocks of an answer, at least one of which is a compaction. OpenAI also
/// returns messages of the user as such blocks and requires all of them in later requests.
fn compaction(answer: &Answer) -> Result<Vec<Opaque>> {
    let blocks = answer.message.content.iter().filter_map(|block| {
        if let ContentBlock::Opaque(opaque) = block { Some(opaque.clone()) } else { None }
    });
    let blocks: Vec<Opaque> = blocks.collect();
    if blocks.iter().any(Opaque::is_compaction) {
        return Ok(blocks);
    }
    let stop_reason = answer.stop_reason.clone();
    match is_meant(&stop_reason) {
        true => Err(StrategyError::NotNative),
        false => Err(StrategyError::Incomplete { stop_reason }),
    }
}

/// The message that the user typed last, if it is among the first `head` and no prompt follows.
fn newest_typed(task: &View, head: usize) -> Option<&Message> {
    let messages = task.thread.messages();
    let newest = messages.iter().rposition(Message::is_typed);
    let newest = newest.filter(|at| *at < head && task.brief.next_prompt.is_none());
    newest.and_then(|at| messages.get(at))
}

/// Returns the prompt for a compaction with the user's instructions. It replaces the provider's
/// prompt, so it also states what every summary needs.
fn prompt(instructions: &Text) -> Text {
    format!(
        "Summarize this conversation so that the work can continue from the summary alone. State \
         what the user asked for, what they want always or never, what was decided and done, the \
         paths, names, values, commands and errors that are still needed, and the next step.\n\n\
         {FOCUS}\n{instructions}"
    )
    .into()
}

/// Returns the notes for the report. `asked` states whether the user gave instructions.
fn notes(blocks: &[Opaque], head: usize, asked: bool) -> Vec<Text> {
    let codec = blocks.iter().find(|block| block.is_compaction()).map(|block| block.codec.as_str());
    let codec = codec.unwrap_or_default();
    let made = format!(
        "The provider ({codec}) compacted {head} messages itself. Its block cannot be looked into, \
         so the audit judges only the text beside it."
    );
    let ignored = (asked && codec == WITHOUT_INSTRUCTIONS).then(|| {
        "The provider takes no instructions for its own compaction, so yours were not sent."
            .to_owned()
    });
    std::iter::once(made).chain(ignored).map(Text::from).collect()
}

/// The dialect whose compaction takes no instructions (SDK openai 3.57).
const WITHOUT_INSTRUCTIONS: &str = "openai-responses";
