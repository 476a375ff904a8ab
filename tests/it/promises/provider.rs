//! A provider that answers by a function, counts correctly, and records its requests.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::json;
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Session, TokenCounter, Usage,
    async_trait, legality,
    message::{CompactionReason, ModelError, ModelErrorKind, StopReason, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    session::{CompactionEvent, SessionBuilder, SessionError, SessionEvent},
    testing::ExtractiveModel,
    tokens::ByteEstimate,
};
use threadfold_testing::TestClock;

use crate::support::bench::{compactions, wants_summary};

/// More requests than any test makes. From here on the model returns errors, so that an endless
/// loop of a session ends.
const MOST_REQUESTS: usize = 2_000;

/// The provider's answer to the n-th request of the conversation.
type Scripted = dyn Fn(&Request, usize) -> Message + Send + Sync;

/// The refusal of a request with this many tokens, if the provider refuses it.
type Refusal = dyn Fn(u64) -> Option<ModelError> + Send + Sync;

/// A provider. Clones share the recorded requests.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    answer: Box<Scripted>,
    refuse: Box<Refusal>,
    counts: bool,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    requests: Vec<Request>,
    answered: usize,
    refused: usize,
}

impl Provider {
    pub(crate) fn new(answer: impl Fn(&Request, usize) -> Message + Send + Sync + 'static) -> Self {
        let (answer, refuse) = (Box::new(answer), Box::new(|_| None));
        Self(Arc::new(Inner { answer, refuse, counts: true, asked: Mutex::default() }))
    }

    /// The provider with these refusals. The tokens are those of the request alone.
    pub(crate) fn refusing(
        self,
        refuse: impl Fn(u64) -> Option<ModelError> + Send + Sync + 'static,
    ) -> Self {
        let Ok(inner) = Arc::try_unwrap(self.0) else { panic!("it is in use") };
        Self(Arc::new(Inner { refuse: Box::new(refuse), ..inner }))
    }

    /// The provider without usage in its answers.
    pub(crate) fn without_usage(self) -> Self {
        let Ok(inner) = Arc::try_unwrap(self.0) else { panic!("it is in use") };
        Self(Arc::new(Inner { counts: false, ..inner }))
    }

    pub(crate) fn session(
        &self,
        window: Option<u64>,
        build: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Session {
        let agent = ModelAgent::new(Arc::new(self.clone()));
        let agent = match window {
            Some(window) => agent.with_window(ContextWindow::new(window)),
            None => agent,
        };
        let builder =
            Session::builder(agent).system("Be brief.").clock(Arc::new(TestClock::ticking(0, 0)));
        build(builder).build().unwrap()
    }

    /// All requests, those for summaries too.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.asked().requests.clone()
    }

    /// The requests of the conversation.
    pub(crate) fn conversation(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !wants_summary(request)).collect()
    }

    /// How often it refused.
    pub(crate) fn refused(&self) -> usize {
        self.asked().refused
    }

    /// The first fault of the requests for a window of this size, if there is one.
    pub(crate) fn fault(&self, window: u64) -> Option<String> {
        self.requests().iter().enumerate().find_map(|(place, request)| {
            let violation = legality::violations(&request.messages).into_iter().next();
            let illegal = violation.map(|violation| format!("request {place}: {violation}"));
            let last = request.messages.last().and_then(|message| message.tool_uses().next());
            let open = last.map(|call| format!("request {place}: call {} is open", call.id));
            let size = tokens(request) + request.max_output.unwrap_or(0);
            let long = (size > window).then(|| format!("request {place} has {size} tokens"));
            illegal.or(open).or(long)
        })
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.asked.lock().unwrap()
    }
}

/// The tokens of a request, as the thread counts.
pub(crate) fn tokens(request: &Request) -> u64 {
    ByteEstimate::TRIGGER.request(request)
}

#[async_trait]
impl Model for Provider {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let (for_summary, size) = (wants_summary(&request), tokens(&request));
        let place = {
            let mut asked = self.asked();
            asked.requests.push(request.clone());
            if asked.requests.len() > MOST_REQUESTS {
                return Err(ModelError::new(ModelErrorKind::Other, "asked too often"));
            }
            if let Some(error) = (self.0.refuse)(size) {
                asked.refused += 1;
                return Err(error);
            }
            asked.answered += usize::from(!for_summary);
            asked.answered - usize::from(!for_summary)
        };
        if for_summary {
            return ExtractiveModel.complete(request).await;
        }
        let message = (self.0.answer)(&request, place);
        let calls = message.tool_uses().next().is_some();
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let usage = Usage::new(size, ByteEstimate::TRIGGER.message(&message));
        Ok(Answer::new(message, stop_reason, self.0.counts.then_some(usage)))
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}

/// A tool whose result has about this many tokens.
#[derive(Debug)]
pub(crate) struct Read(pub(crate) u64);

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("read", "Reads.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        _: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok(ToolOutput::from(lines(self.0)))
    }
}

/// A text of about this many tokens.
pub(crate) fn lines(tokens: u64) -> String {
    (0..tokens / 10).map(|line| format!("{line:06}: another line of a log\n")).collect()
}

/// An answer that calls the tool once.
pub(crate) fn reading(place: usize) -> Message {
    crate::support::bench::calls(&[(&format!("call_{place}"), "read", "{}")])
}

/// The n-th answer of a provider that calls the tool this many times in every turn, and then
/// answers with a word.
pub(crate) fn reading_rounds(place: usize, rounds: usize) -> Message {
    match place % (rounds + 1) {
        last if last == rounds => Message::assistant("I read it."),
        _ => reading(place),
    }
}

/// The compactions without exactly one start and one end event.
pub(crate) fn unreported(events: &[Result<SessionEvent, SessionError>]) -> Vec<String> {
    let reported = compactions(events);
    let mut open = None;
    let mut complaints = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for event in reported {
        let id = event.id();
        match (&event, open) {
            (CompactionEvent::Started { .. }, None) if seen.insert(id) => open = Some(id),
            (CompactionEvent::Started { .. }, _) => complaints.push(format!("{id} begins again")),
            (_, Some(begun)) if begun == id => open = open.filter(|_| !event.is_end()),
            (_, open) => complaints.push(format!("{open:?} is open, but: {event:?}")),
        }
    }
    complaints.extend(open.map(|id| format!("{id} has no end")));
    complaints
}

/// The reasons of the completed compactions.
pub(crate) fn reasons(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionReason> {
    let reported = compactions(events);
    let completed = |of| {
        let ends = |event: &CompactionEvent| matches!(event, CompactionEvent::Completed { .. });
        reported.iter().any(|event| event.id() == of && ends(event))
    };
    let reason = |event: &CompactionEvent| match event {
        CompactionEvent::Started { id, reason, .. } if completed(*id) => Some(reason.clone()),
        _ => None,
    };
    reported.iter().filter_map(reason).collect()
}

/// The notices for the user.
pub(crate) fn notices(events: &[Result<SessionEvent, SessionError>]) -> Vec<String> {
    let notice = |event: &Result<SessionEvent, SessionError>| match event {
        Ok(SessionEvent::Notice { text }) => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(notice).collect()
}
