//! `summarize`: the conversation's own model sums the old part up.
//!
//! The request is the old part of the thread itself, under the system prompt and tools that the
//! model knows it by, so that the provider's cache still holds it, and behind it one message that
//! asks for the summary. The end of the thread stays as it is; of the summarised part, what the
//! user typed last stays word for word. The summary is a user message in its tag: no provider
//! drops it, and the thread still begins with the user.

use serde::{Deserialize, Serialize};

use super::{
    attempt,
    brief::Brief,
    contract::{Attempt, CompactionStrategy, ModelRole, StrategyError},
    snapshot::Snapshot,
    tail,
};
use crate::{
    compact::{CompactOptions, Plan},
    message::{CacheMarks, ContentBlock, Message, Request, Role, Summary, ToolChoice},
};

/// A call of the model is not worth it for less than this.
const LEAST_TOKENS: u64 = 100;

const PROMPT: &str = include_str!("prompts/summarize.md");

/// Replaces the old part of the thread with a summary by the conversation's own model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Summarize {
    /// How many messages stay at the end at least, if they fit. More stay where no cut is legal.
    pub messages: usize,
    /// The most tokens that these may have.
    pub tokens: Option<u64>,
    /// How many messages of the user stay word for word out of the part that is summarised.
    pub user_messages: usize,
    /// The most tokens that these may have together. The last one stays whatever its size.
    pub user_tokens: u64,
    /// The most tokens that the summary may have.
    pub summary_tokens: u64,
}

impl Default for Summarize {
    fn default() -> Self {
        Self {
            messages: 8,
            tokens: None,
            user_messages: 3,
            user_tokens: 4_000,
            summary_tokens: 4_096,
        }
    }
}

impl CompactionStrategy for Summarize {
    fn name(&self) -> &str {
        "summarize"
    }

    fn begin(&self, thread: &Snapshot, brief: &Brief) -> Box<dyn Attempt> {
        let cut = match self.cut(thread, brief) {
            Ok(cut) => cut,
            Err(error) => return attempt::propose(Err(error)),
        };
        let request = self.request(thread, brief, cut);
        let (strategy, thread) = (*self, thread.clone());
        attempt::ask(ModelRole::Conversation, request, move |turn| {
            strategy.plan(&thread, cut, Summary::new(attempt::summary_of(&turn)?))
        })
    }
}

impl Summarize {
    fn cut(&self, thread: &Snapshot, brief: &Brief) -> Result<usize, StrategyError> {
        // What comes in the place of the old part has to fit beside the tail.
        let comes = self.summary_tokens.saturating_add(self.user_tokens);
        let target = brief.target.map(|target| target.saturating_sub(comes).max(target / 4));
        let cut =
            tail::cut(thread, self.messages, [self.tokens, target].into_iter().flatten().min())?;
        let kept = tail::typed(thread, cut, self.user_messages, self.user_tokens);
        tail::check_worth(thread, cut, &kept, LEAST_TOKENS)?;
        Ok(cut)
    }

    fn request(&self, thread: &Snapshot, brief: &Brief, cut: usize) -> Request {
        let mut messages: Vec<Message> = thread.messages().iter().take(cut).cloned().collect();
        messages.push(question(brief));
        Request {
            system: thread.system().clone(),
            tools: thread.tools().clone(),
            tool_choice: (!thread.tools().is_empty()).then_some(ToolChoice::None),
            max_output: Some(self.summary_tokens),
            cache: CacheMarks::Off,
            ..Request::new(messages)
        }
    }

    fn plan(&self, thread: &Snapshot, cut: usize, summary: Summary) -> Result<Plan, StrategyError> {
        let kept = tail::typed(thread, cut, self.user_messages, self.user_tokens);
        let summary = Message::summary(Role::User, summary);
        let edits = tail::take_all_but(kept, cut, vec![summary]);
        Ok(Plan::from_edits(thread.messages(), edits, &CompactOptions::default())?)
    }
}

/// The message that asks for the summary.
fn question(brief: &Brief) -> Message {
    let mut text = PROMPT.trim_end().to_owned();
    if let Some(focus) = brief.reason.focus() {
        text.push_str("\n\nThe user asks you to pay special attention to this:\n");
        text.push_str(focus);
    }
    let next = brief.next_prompt.iter().flat_map(|prompt| &prompt.content);
    let next: Vec<&str> =
        next.filter_map(ContentBlock::as_text).map(|text| text.as_str()).collect();
    if !next.is_empty() {
        text.push_str(
            "\n\nRight after the summary the user will ask this; do not answer it now:\n",
        );
        text.push_str(&next.join("\n"));
    }
    Message::user(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{CompactionReason, StopReason, Turn},
        strategy::Step,
    };

    fn thread() -> Snapshot {
        let turn = |number: usize| {
            [
                Message::user(format!("question {number} about a thing of some length")),
                Message::assistant(format!("answer {number} that goes into quite some detail")),
            ]
        };
        Snapshot::new((0..8).flat_map(turn).collect::<Vec<_>>())
    }

    fn begin(brief: &Brief) -> Box<dyn Attempt> {
        Summarize::default().begin(&thread(), brief)
    }

    #[test]
    fn the_request_is_the_old_part_and_the_question() {
        let reason = CompactionReason::Manual { focus: Some("the parser".into()) };
        let next_prompt = Some(Message::user("What now?"));
        let attempt = begin(&Brief { reason, next_prompt, ..Brief::default() });
        let Step::Call { request, .. } = attempt.step() else { panic!("it asks a model") };
        assert_eq!(request.messages[..8], thread().messages()[..8]);
        let question = request.messages[8].content[0].as_text().unwrap();
        assert!(question.contains("the parser") && question.ends_with("What now?"), "{question}");
    }

    #[test]
    fn the_summary_stands_behind_what_the_user_typed_and_before_the_tail() {
        let mut attempt = begin(&Brief::default());
        attempt.handle(Ok(Turn::new(Message::assistant(" Brief. "), StopReason::EndTurn, None)));
        let Step::Proposed(proposal) = attempt.step() else { panic!("{attempt:?}") };
        let after = thread().accept(&proposal.plan, &Brief::default()).unwrap();
        let old = thread();
        let old = old.messages();
        assert_eq!(after[..3], [old[2].clone(), old[4].clone(), old[6].clone()]);
        assert_eq!(after[3], Message::summary(Role::User, Summary::new("Brief.")));
        assert_eq!(after[4..], old[8..]);
    }

    #[test]
    fn a_short_thread_is_left_alone() {
        let short = Snapshot::new(thread().messages()[..8].to_vec());
        let attempt = Summarize::default().begin(&short, &Brief::default());
        assert!(matches!(attempt.step(), Step::Failed(StrategyError::NothingToCompact { .. })));
    }
}
