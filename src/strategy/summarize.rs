//! `summarize`: the conversation's own model summarises the old part of the thread.
//!
//! The request holds the old part, the conversation's system prompt and tools, so that the
//! provider's prompt cache may apply, and one final message that asks for the summary. A model that
//! calls a tool instead is asked once more with tool calls forbidden. Alternatively the old part is
//! sent as text to the fast model, without tools. One compaction never tries both forms, because that
//! would send the longest part of the thread twice.
//!
//! An earlier summary in the old part is sent with all of its batches. What stands of it is at the
//! beginning of the next summary as it was (see `segments`), and the model is asked to bring the
//! rest up to date. If the request exceeds the window, it is sent with trimmed tool results. Beside the
//! summary the target is filled as by `digest`. The summary is a tagged user message: no provider
//! drops it, and the thread still begins with the user.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    ask::{Ask, Retries, quoted_summary_of},
    clip::clip,
    contract::CompactionStrategy,
    digest,
    error::Result,
    full_summary,
    instructions::{self, SECTIONS, VALUES, asides, fill, sections, tagged},
    lists,
    proposal::{ModelRole, Proposal},
    segments::Segments,
    tail::{self, Candidate, TailRequest},
    view::View,
};
use crate::{
    ledger::Quotes,
    message::{Message, ModelError, Request, Role, Text},
    render::{RenderOptions, render},
};

const PROMPT: &str = include_str!("prompts/summarize.md");
const OPENING: &str = include_str!("prompts/summarize_opening.md");
const UPDATE: &str = include_str!("prompts/summarize_update.md");
const NEXT: &str = "Right after the summary the user will ask this; do not answer it now:";

/// The system prompt for a model that reads the old part as text.
const READER: &str = include_str!("prompts/summarize_text.md");

options! {
    /// Replaces the old part of the thread with a model's summary under eight headings, from the
    /// user's goals to the next step.
    ///
    /// If the thread is over the target of the brief, the summary takes at most a third of the target,
    /// and the rest is filled as by [`Digest`](super::Digest): the task and the newest whole rounds
    /// stay word for word, and lines follow the summary that the agent most likely needs again.
    /// `messages`, `tokens`, `user_messages` and `user_tokens` apply to a thread within its target,
    /// without one, or whose target the user's words need.
    ///
    /// ```
    /// use threadfold::{Message, strategy::*, testing::{answers, asked}};
    ///
    /// let question = |n| Message::user(format!("Question {n}? {}", "Word ".repeat(30)));
    /// let answer = |n| [question(n), Message::assistant("Answer.")];
    /// let thread = Snapshot::new((0..8).flat_map(answer).collect::<Vec<_>>());
    /// let view = View::new(thread, Brief::default());
    /// let strategy = Summarize { messages: 4, ..Summarize::default() };
    /// let (calls, proposal) = asked(&strategy, &view, answers(["They talked."]));
    /// assert_eq!(calls[0].request.messages.len(), 12 + 1);
    /// assert!(proposal?.plan.messages_after() < 16);
    /// # Ok::<(), StrategyError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Summarize {
        /// Number of messages to keep at the end, if they fit the target. More stay if no legal cut
        /// is near. Fewer stay if the user requests a compaction and nothing else can be
        /// summarised.
        pub messages: usize = 8,
        /// Upper limit for the tokens of these messages.
        pub tokens: Option<u64> = None,
        /// Number of user messages in the summarised part that stay word for word.
        pub user_messages: usize = 3,
        /// Upper limit for the tokens of these user messages. The newest one stays whatever its
        /// size.
        pub user_tokens: u64 = 4_000,
        /// Upper limit for the tokens of the summary.
        pub summary_tokens: u64 = 4_096,
        /// Whether the fast model reads the summarised part as text, without system prompt and
        /// tools. Otherwise the conversation's model reads it as messages, and the provider's
        /// prompt cache may apply.
        pub as_text: bool = false,
        /// The opening of the question, instead of the built-in one: what to write, and for whom.
        /// The rest of the question follows: sections, literal values, instructions, rules.
        pub prompt: Option<Text> = None,
        /// The sections of the summary, in order: one text each that describes its content. Empty
        /// for the built-in eight.
        pub sections: Vec<Text> = Vec::new(),
    }
}

#[async_trait]
impl CompactionStrategy for Summarize {
    fn name(&self) -> &str {
        "summarize"
    }

    async fn propose(&self, task: &View, ask: &mut Ask<'_>) -> Result<Proposal> {
        instructions::check(self.prompt.as_ref(), &self.sections)?;
        // The count that fired the trigger may include more than the estimate, so a first summary is
        // written although the estimate is within the target.
        if task.thread.messages().iter().any(Message::is_summary) {
            task.check_need()?;
        }
        let candidates = self.candidates(task)?;
        let cut = candidates.first().map_or(0, |candidate| candidate.cut);
        let target = task.missed_target();
        let room = digest::summary_room(task, cut);
        let counter = task.thread.counter();
        // What stands leaves at least half of the room to what is new.
        let (head, _) = task.thread.split_at(cut);
        let segments = Segments::of(head, room / 2, counter);
        let room = room.saturating_sub(counter.text(&segments.text()));
        let request = self.fitting_request(task, cut, &segments)?;
        let model = if self.as_text { ModelRole::Fast } else { ModelRole::Conversation };
        // Do not retry: the next rung of a ladder can run without a wait.
        let retries = Retries { most: 0, ..Retries::default() };
        let asked = request.clone();
        let smaller = |error: &ModelError| {
            let thread = task.thread.after_refusal(&asked, error)?;
            let request = self.fitting_request(&task.with_thread(thread), cut, &segments).ok()?;
            // If the prompt stays the same, only a shorter answer can help.
            let most = asked.max_output.filter(|_| request.messages == asked.messages);
            let most = most.map_or(u64::MAX, |most| most / 2);
            Some(Request { max_output: request.max_output.map(|it| it.min(most)), ..request })
        };
        let answer = ask.question_with(model, request, retries, smaller).await?;
        let (text, quotes) = quoted_summary_of(&answer)?;
        let task = task.quoting(&quotes);
        ask.quoted(quotes);
        // Whole sentences go before the text is cut at any place.
        let text = task.thread.own_text(&text);
        let text = clip(&text, room, task.thread.counter());
        let summary = segments.with(&text, task.brief.compaction);
        let filled = target.and_then(|_| digest::filled_beside(&task, &summary, cut));
        match filled {
            Some(plan) => Ok(Proposal::filled(plan)),
            None => {
                let summary = Message::summary(Role::User, summary);
                let plan = task.first_within_target(&candidates, |candidate| {
                    candidate.plan(&task, vec![summary.clone()])
                })?;
                Ok(Proposal::new(plan))
            }
        }
    }
}

impl Summarize {
    /// Returns the request for a summary of everything before the cut, with an answer that fits the
    /// window beside it. If the prompt leaves no room for an answer, tool results are trimmed: they
    /// take most of the room, and their first lines matter most.
    fn fitting_request(&self, task: &View, cut: usize, stands: &Segments) -> Result<Request> {
        let thread = &task.thread;
        let head = thread.messages().iter().take(cut);
        let head: Vec<Message> = full_summary::messages(head).collect();
        let whole = thread.with_answer_room(self.request(task, head.clone(), stands));
        let Err(too_long) = whole else { return whole };
        let shorter = tail::trimmed(&head).map(|head| self.request(task, head, stands));
        let mut fitting = shorter.filter_map(|request| thread.with_answer_room(request).ok());
        fitting.next().ok_or(too_long)
    }

    /// Returns what may stay beside a summary: the first candidate that is worth a call and likely
    /// to meet the target, then smaller ones for a longer summary.
    fn candidates(&self, task: &View) -> Result<Vec<Candidate>> {
        let View { thread, brief } = task;
        let target = task.missed_target().unwrap_or(u64::MAX);
        let expected = self.summary_tokens.min(target / 4);
        if task.missed_target().is_some()
            && let Some(cut) = digest::cut_beside(task, expected)
            && task.check_worth(&task.with_newest(cut, None), tail::MIN_TOKENS).is_ok()
        {
            return Ok(task.shrinking(cut, 1, 0));
        }
        let user_tokens = self.user_tokens.min(target / 4);
        let reserved = [self.summary_tokens, user_tokens, brief.reserve(), thread.stamp_tokens()];
        let request = TailRequest {
            messages: self.messages,
            tokens: self.tokens,
            user_messages: self.user_messages,
            user_tokens,
            reserved: reserved.into_iter().fold(0, u64::saturating_add),
            shrinks_when_asked: true,
        };
        let candidates = task.worthwhile(request)?;
        let mut chosen = candidates.len().saturating_sub(1);
        for (index, candidate) in candidates.iter().enumerate() {
            // With a summary of one character, everything else has its final size.
            let frame = candidate.plan(task, vec![message(task, ".".into())])?;
            if thread.tokens_after(&frame)?.saturating_add(expected) <= target {
                chosen = index;
                break;
            }
        }
        let cut = candidates.get(chosen).map_or(0, |candidate| candidate.cut);
        let rest = candidates.into_iter().skip(chosen);
        Ok(rest.filter(|candidate| candidate.cut == cut).collect())
    }

    fn request(&self, task: &View, head: Vec<Message>, stands: &Segments) -> Request {
        let question = self.question(task, head.iter().any(Message::is_summary), stands);
        let request = match self.as_text {
            // An earlier summary keeps its place: a prompt cache serves a request only up to the
            // first message that differs.
            false => Request {
                system: task.thread.system().clone(),
                tools: task.thread.tools().clone(),
                ..Request::new(head.into_iter().chain([question]).collect::<Vec<_>>())
            },
            true => {
                let (summary, new) = full_summary::split(&head, &task.brief).unzip();
                let transcript = render(&new.unwrap_or(head), &RenderOptions::default());
                let texts = summary.map(|text| tagged("summary", &text)).into_iter();
                let texts = texts.chain([tagged("transcript", transcript.text())]);
                let messages = texts.map(Message::user).chain([question]);
                Request::new(messages.collect::<Vec<_>>()).with_system(READER.trim_end())
            }
        };
        Request { max_output: Some(self.summary_tokens), cache: false, ..request }
    }

    /// The message that asks for the summary, or for an update of an earlier one.
    fn question(&self, task: &View, is_update: bool, stands: &Segments) -> Message {
        let update = match stands.request() {
            Some(stands) => format!("\n\n{stands}"),
            None if is_update => format!("\n\n{}", UPDATE.trim_end()),
            None => String::new(),
        };
        let values = [
            ("opening", self.prompt.as_deref().unwrap_or(OPENING).trim_end()),
            ("sections", &sections(&self.sections, SECTIONS)),
            ("values", VALUES),
            ("update", &update),
        ];
        let asides = asides(task, &lists::for_model(&task.thread), NEXT);
        Message::user(fill(PROMPT, &values) + "\n\n" + Quotes::ASK + &asides)
    }
}

fn message(task: &View, text: Text) -> Message {
    Message::summary(Role::User, task.summary(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{CompactionReason, ContextWindow, ModelErrorKind},
        strategy::{Brief, ModelCall, Snapshot, StrategyError},
        testing::{answers, asked},
    };

    fn thread() -> Snapshot {
        let turn = |number: usize| {
            [
                Message::user(format!("question {number} about a thing of some length")),
                Message::assistant(format!(
                    "answer {number} that goes into quite some detail, and then some more"
                )),
            ]
        };
        Snapshot::new((0..8).flat_map(turn).collect::<Vec<_>>())
    }

    /// The first request, or why there is none.
    fn request(strategy: &Summarize, thread: &Snapshot, brief: Brief) -> Result<Request> {
        let view = View::new(thread.clone(), brief);
        let (calls, outcome) = asked(strategy, &view, answers([""; 0]));
        match calls.into_iter().next() {
            Some(call) => Ok(call.request),
            None => Err(outcome.unwrap_err()),
        }
    }

    #[test]
    fn the_request_is_the_old_part_and_the_question() {
        let reason = CompactionReason::Manual { instructions: Some("the parser".into()) };
        let next_prompt = Some(Message::user("What now?"));
        let brief = Brief { reason, next_prompt, ..Brief::default() };
        let request = request(&Summarize::default(), &thread(), brief).unwrap();
        assert_eq!(request.messages[..8], thread().messages()[..8]);
        let question = request.messages[8].content[0].as_text().unwrap();
        assert!(question.contains("the parser") && question.ends_with("What now?"), "{question}");
    }

    #[test]
    fn the_summary_comes_after_the_kept_user_messages_and_before_the_tail() {
        let view = View::new(thread(), Brief::default());
        let (_, proposal) = asked(&Summarize::default(), &view, answers([" Brief. "]));
        let after = thread().accept(&proposal.unwrap().plan, &view.brief).unwrap();
        let old = thread();
        let old = old.messages();
        assert_eq!(after[..3], [old[2].clone(), old[4].clone(), old[6].clone()]);
        assert_eq!(after[3].summaries().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["Brief."]);
        assert_eq!(after[4..], old[8..]);
    }

    #[test]
    fn as_text_the_range_is_sent_once_and_not_as_messages() {
        let strategy = Summarize { as_text: true, ..Summarize::default() };
        let view = View::new(thread(), Brief::default());
        let (calls, _) = asked(&strategy, &view, answers([""; 0]));
        let ModelCall { model: ModelRole::Fast, request, .. } = &calls[0] else {
            panic!("{calls:?}")
        };
        assert_eq!((request.messages.len(), request.tools.len()), (2, 0));
        let sent = serde_json::to_string(request).unwrap();
        assert_eq!(sent.matches("answer 2 that goes").count(), 1);
        assert!(!sent.contains("question 4"), "the tail is not summed up");
    }

    #[test]
    fn a_request_over_the_window_is_not_sent() {
        let small = thread().with_window(Some(ContextWindow::new(1_000)));
        let error = request(&Summarize::default(), &small, Brief::default()).unwrap_err();
        assert!(matches!(error, StrategyError::TooLong { window: 1_000, .. }), "{error}");
    }

    #[test]
    fn prompt_and_answer_fit_the_window_together() {
        for window in [2_000, 4_100, 5_000, 8_000] {
            let small = thread().with_window(Some(ContextWindow::new(window)));
            let request = request(&Summarize::default(), &small, Brief::default()).unwrap();
            let answer = request.max_output.unwrap();
            let all = small.counter().request(&request) + answer;
            assert!(all <= window - window / 64 && answer >= 512, "{window}: {all}, {answer}");
        }
    }

    #[test]
    fn a_refusal_that_states_the_window_gets_one_second_try_with_less() {
        let large = thread().with_window(Some(ContextWindow::new(8_000)));
        let prompt_of = |request: &Request| large.counter().request(request);
        let refuses = |call: &ModelCall| {
            let (found, output) = (Some(prompt_of(&call.request)), call.request.max_output);
            let kind = ModelErrorKind::Overflow { limit: Some(4_000), found, output };
            Err(ModelError::new(kind, "too long"))
        };
        let view = View::new(large.clone(), Brief::default());
        let (calls, outcome) = asked(&Summarize::default(), &view, refuses);
        let [first, second] = calls.as_slice() else { panic!("only one second try: {calls:?}") };
        let (prompt, most) = (prompt_of(&first.request), first.request.max_output.unwrap());
        let less = second.request.max_output.unwrap();
        assert!(less <= most / 2 && prompt + less <= 4_000, "{most} {less}");
        assert!(matches!(outcome, Err(StrategyError::Model(_))), "{outcome:?}");
    }

    #[test]
    fn a_short_thread_is_left_alone() {
        let short = Snapshot::new(thread().messages()[..8].to_vec());
        let unasked = Brief { reason: CompactionReason::Threshold, ..Brief::default() };
        let error = request(&Summarize::default(), &short, unasked).unwrap_err();
        assert!(matches!(error, StrategyError::NothingToCompact { .. }), "{error}");
    }
}
