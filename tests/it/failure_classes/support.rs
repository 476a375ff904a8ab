//! Scripted models, and sessions over them.

use threadfold_testing::TestClock;

use super::*;
use crate::support::polls::pending_once;

pub(crate) type Plays = Box<dyn Fn(&Request) -> Scripted + Send + Sync>;

/// A model for the conversation and one for summaries. It records its requests.
pub(crate) struct Played {
    works: Plays,
    sums_up: Plays,
    requests: Mutex<Vec<Request>>,
}

impl Played {
    /// Returns a model that answers the conversation in this way, and summarises by extracts.
    pub(crate) fn new(works: impl Fn(&Request) -> Scripted + Send + Sync + 'static) -> Self {
        let extract = |request: &Request| {
            answer_of(ExtractiveModel, request).map_or_else(Scripted::Error, Scripted::Answer)
        };
        Self { works: Box::new(works), sums_up: Box::new(extract), requests: Mutex::default() }
    }

    /// Returns the model with these summaries instead of extracts.
    pub(crate) fn summing_up(
        self,
        sums_up: impl Fn(&Request) -> Scripted + Send + Sync + 'static,
    ) -> Self {
        Self { sums_up: Box::new(sums_up), ..self }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The requests of the conversation.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| !wants_summary(request)).collect()
    }

    /// The requests for summaries.
    pub(crate) fn summaries(&self) -> Vec<Request> {
        self.requests().into_iter().filter(wants_summary).collect()
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played").finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for Played {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let plays = if wants_summary(&request) { &self.sums_up } else { &self.works };
        ScriptedModel::new([plays(&request)]).complete(request).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        // The model is asked only when it is polled, and is not ready at once, as real models are.
        let answer = async move {
            pending_once().await;
            self.requests.lock().unwrap().push(request.clone());
            let plays = if wants_summary(&request) { &self.sums_up } else { &self.works };
            let model = ScriptedModel::new([plays(&request)]);
            model.stream(request).collect::<Vec<_>>().await
        };
        futures::stream::once(answer).map(futures::stream::iter).flatten().boxed()
    }
}

/// A tool that writes the requested number of lines, and records the parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Write(Arc<Mutex<Vec<u64>>>);

impl Write {
    pub(crate) fn parts(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("write", "Writes a part.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input: Value = call.input.json()?.to_value()?;
        let part = input["part"].as_u64().ok_or("which part?")?;
        self.0.lock().unwrap().push(part);
        let lines = input["lines"].as_u64().unwrap_or(1) as usize;
        Ok(ToolOutput::from(format!("part {part}\n{}", LINE.repeat(lines))))
    }
}

pub(crate) const LINE: &str = "    a line of the part that was written\n";

pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) model: Arc<Played>,
    pub(crate) tool: Write,
    pub(crate) window: u64,
}

/// A session whose clock advances a second with each reading.
pub(crate) fn bench(
    window: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    timed(window, 1_000, model, build)
}

pub(crate) fn timed(
    window: u64,
    step: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    opened(Arc::default(), window, step, model, build)
}

pub(crate) fn opened(
    store: Arc<MemoryStore>,
    window: u64,
    step: u64,
    model: Played,
    build: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Bench {
    let (model, tool) = (Arc::new(model), Write::default());
    let agent = ModelAgent::new(model.clone()).with_window(ContextWindow::new(window));
    let journal = block_on(Journal::open(store, "thread-1".parse().unwrap())).unwrap();
    let builder = Session::builder(agent)
        .checkpoints()
        .journal(journal)
        .system("Be kind.")
        .clock(Arc::new(TestClock::ticking(1_000_000, step)))
        .policy(policy())
        .tool(Arc::new(tool.clone()));
    Bench { session: build(builder).build().unwrap(), model, tool, window }
}

pub(crate) type Happened = Vec<Result<SessionEvent, SessionError>>;

impl Bench {
    pub(crate) fn say(&mut self, text: impl Into<Text>) -> Result<Reply, SessionError> {
        block_on(IntoFuture::into_future(self.session.send(text)))
    }

    pub(crate) fn events(&mut self, text: impl Into<Text>) -> Happened {
        let mut stream = self.session.send(text);
        let mut events = Vec::new();
        while let Some(event) = block_on(stream.next()) {
            events.push(event);
        }
        events
    }

    /// Sends this many texts, all of which must be answered, and returns the events.
    pub(crate) fn chat(&mut self, rounds: usize) -> Happened {
        let mut all = Vec::new();
        for round in 0..rounds {
            let events = self.events(question(round));
            for event in &events {
                assert!(event.is_ok(), "round {round}: {event:?}");
            }
            let ended = |event: &Result<_, _>| matches!(event, Ok(SessionEvent::TurnEnded { .. }));
            assert!(events.iter().any(ended), "round {round}: {events:?}");
            all.extend(events);
        }
        all
    }

    /// The records of the compactions in the log.
    pub(crate) fn records(&self) -> Vec<CompactionRecord> {
        let log = block_on(self.session.whole_log()).unwrap();
        let record = |event: &Event| match event {
            Event::Compacted(record) => Some((**record).clone()),
            _ => None,
        };
        log.events().iter().filter_map(|logged| record(&logged.event)).collect()
    }

    pub(crate) fn last_asked(&self) -> Request {
        self.model.asked().pop().unwrap()
    }

    /// Checks that log and thread agree, and that no request was too long or illegal.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.session.log().replay(), self.session.messages()[..]);
        for request in self.model.requests() {
            assert_eq!(legality::violations(&request.messages), []);
            let tokens = ByteEstimate::TRIGGER.request(&request);
            assert!(tokens <= self.window, "{tokens} tokens in a window of {}", self.window);
        }
    }
}

pub(crate) fn question(round: usize) -> String {
    format!("Question {round}: {}", "what is there to say about it ".repeat(4))
}

/// Answers in some words.
pub(crate) fn chats(_: &Request) -> Scripted {
    format!("Well: {}", "there is this to say about it ".repeat(8)).into()
}

pub(crate) fn with_usage(mut answer: Answer, usage: Usage) -> Scripted {
    answer.usage = Some(usage);
    answer.into()
}

/// Returns the answer of this model, which must be ready at once.
pub(crate) fn answer_of(model: impl Model, request: &Request) -> Result<Answer, ModelError> {
    model.complete(request.clone()).now_or_never().unwrap()
}

/// Answers with this count.
pub(crate) fn counted(text: &str, usage: Usage) -> Scripted {
    Answer::new(Message::assistant(text), StopReason::EndTurn, Some(usage)).into()
}

/// Writes this many parts of this many lines, one in each round, and then answers. It only reads
/// the thread: the last result or summary after the user's newest text says how many parts are
/// done.
pub(crate) fn writes(parts: u64, lines: u64) -> impl Fn(&Request) -> Scripted + Send + Sync {
    move |request| {
        let asked = request.messages.iter().rposition(Message::is_typed).map_or(0, |at| at + 1);
        let done = request.messages[asked..].iter().map(written).max().unwrap_or_default();
        if done == parts { "All parts are written.".into() } else { calls(&[(done + 1, lines)]) }
    }
}

/// The last written part that a message states.
pub(crate) fn written(message: &Message) -> u64 {
    let results = message.tool_results().flat_map(|result| &result.content);
    let texts = results.chain(&message.content).filter_map(|block| match block {
        ContentBlock::Text(text) => Some(&text.text),
        ContentBlock::Summary(summary) => Some(&summary.text),
        _ => None,
    });
    let numbers = texts.flat_map(|text| text.split("part ").skip(1)).filter_map(|behind| {
        behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    });
    numbers.max().unwrap_or_default()
}

/// One message with the calls for these parts, of this many lines each.
pub(crate) fn calls(parts: &[(u64, u64)]) -> Scripted {
    let call = |(part, lines): &(u64, u64)| {
        let input = json!({"part": part, "lines": lines});
        ContentBlock::from(ToolUse::new(format!("call-{part}"), "write", input))
    };
    Message::new(Role::Assistant, parts.iter().map(call).collect()).into()
}

pub(crate) fn fails(kind: ModelErrorKind) -> Scripted {
    ModelError::new(kind, "as asked").into()
}

pub(crate) fn overflow(limit: Option<u64>) -> Scripted {
    fails(ModelErrorKind::Overflow { limit, found: None, output: None })
}

pub(crate) fn ends(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionEvent> {
    compactions(events).into_iter().filter(CompactionEvent::is_end).collect()
}

/// The number of compactions that were begun, and of those that were completed.
pub(crate) fn begun_and_done(events: &[Result<SessionEvent, SessionError>]) -> (usize, usize) {
    let reported = compactions(events);
    let begun = |event: &&CompactionEvent| matches!(event, CompactionEvent::Started { .. });
    let done = |event: &&CompactionEvent| matches!(event, CompactionEvent::Completed { .. });
    (reported.iter().filter(begun).count(), reported.iter().filter(done).count())
}

pub(crate) fn reasons(events: &[Result<SessionEvent, SessionError>]) -> Vec<CompactionReason> {
    let reason = |event: CompactionEvent| match event {
        CompactionEvent::Started { reason, .. } => Some(reason),
        _ => None,
    };
    compactions(events).into_iter().filter_map(reason).collect()
}

/// The notices that automatic compaction is suspended.
pub(crate) fn rests(events: &[Result<SessionEvent, SessionError>]) -> usize {
    let rests = |event: &&Result<SessionEvent, SessionError>| matches!(event, Ok(SessionEvent::Notice { text }) if text.contains("compaction rests"));
    events.iter().filter(rests).count()
}

pub(crate) fn summaries(messages: &[Message]) -> Vec<Summary> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let summary = |block: &ContentBlock| match block {
        ContentBlock::Summary(summary) => Some(summary.clone()),
        _ => None,
    };
    blocks.filter_map(summary).collect()
}

/// The plain text of messages.
pub(crate) fn texts(messages: &[Message]) -> String {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.text.to_string()),
        ContentBlock::Summary(summary) => Some(summary.text.to_string()),
        _ => None,
    };
    blocks.filter_map(text).collect::<Vec<_>>().join("\n")
}

pub(crate) fn typed(text: &str, messages: &[Message]) -> bool {
    let says = |block: &ContentBlock| block.as_text().is_some_and(|found| found.as_str() == text);
    messages.iter().any(|message| message.role == Role::User && message.content.iter().any(says))
}

/// All built-in strategies, with options with which they find something in a short thread.
pub(crate) fn strategies() -> Vec<Arc<dyn CompactionStrategy>> {
    vec![
        Arc::new(summarize()),
        Arc::new(Chunked::default()),
        Arc::new(Rolling { keep_recent: 4, ..Rolling::default() }),
        Arc::new(KeepRecent { messages: 4, ..KeepRecent::default() }),
        Arc::new(TrimToolResults::default()),
        Arc::new(Digest { messages: 4, digest_tokens: 600, ..Digest::default() }),
        Arc::new(Ladder::default()),
    ]
}

pub(crate) fn summarize() -> Summarize {
    Summarize { messages: 4, summary_tokens: 400, ..Summarize::default() }
}

// Compactions in a loop.

/// Summarises in a line, by an edit where one is asked for.
pub(crate) fn sums_up_in_prose(request: &Request) -> Scripted {
    let part = request.messages.iter().map(written).max().unwrap_or_default();
    let line = format!("They have written everything up to part {part}.");
    let edits = request.tools.iter().any(|tool| tool.name == "edl");
    let edited = request.messages.iter().any(|message| message.tool_results().next().is_some());
    if !edits || edited {
        return line.into();
    }
    let script = format!("file /summary.md\nselect eof\ninsert_after <<END\n{line}\nEND\n");
    let call = ToolUse::new("edit", "edl", json!({ "script": script }));
    Message::new(Role::Assistant, vec![call.into()]).into()
}

// Failures without an error.
