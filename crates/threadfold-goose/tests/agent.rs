//! A goose agent with a tool, 60 steps, in a window that its conversation exceeds many times. Every
//! request that its provider received is checked.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
};

use goose_agent::{
    inference::{InferenceEffect, InferenceRunner},
    machine::{EffectHandler, MachineSession, SessionLoader, StateMachine, Step},
    operation::{Emitter, MachineEffect},
    tool::{ToolOperation, ToolProvider},
};
use goose_provider_types::{
    base::{MessageStream, Provider},
    conversation::{
        Conversation,
        message::{Message, MessageContent, MessageUsage},
        token_usage::{ProviderUsage, Usage},
    },
    errors::ProviderError,
    model::ModelConfig,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ErrorData, JsonObject, Role, Tool,
};
use serde_json::json;
use threadfold::{
    CompactionStrategy, ContextWindow, Message as Ours, async_trait,
    message::CompactionId,
    strategy::{Ask, Digest, Proposal, StrategyError, View},
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_goose::{Folding, GooseModel};

const WINDOW: u64 = 8_000;
const STEPS: usize = 60;
const TASK: &str = "Mend the parser. Never touch the lexer, and write no file outside of src.";

/// What the provider does when it is asked.
#[derive(Clone)]
enum Turn {
    Call(usize),
    Say(&'static str),
    Refuse,
}

/// A provider that answers from a list, and the messages of each request that it received.
#[derive(Default)]
struct Scripted {
    turns: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<Vec<Message>>>,
    /// What it multiplies its own counts by, in tenths; 0 if it reports none.
    counts: u64,
}

impl Scripted {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Arc<Self> {
        Arc::new(Self { turns: Mutex::new(turns.into_iter().collect()), ..Self::default() })
    }

    fn add(&self, turns: impl IntoIterator<Item = Turn>) {
        self.turns.lock().expect("no panic").extend(turns);
    }

    fn requests(&self) -> Vec<Vec<Message>> {
        self.requests.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl Provider for Scripted {
    fn get_name(&self) -> &str {
        "scripted"
    }

    async fn stream(
        &self,
        model: &ModelConfig,
        _system: &str,
        messages: &[Message],
        _tools: &[Tool],
    ) -> Result<MessageStream, ProviderError> {
        self.requests.lock().expect("no panic").push(messages.to_vec());
        let turn = self.turns.lock().expect("no panic").pop_front();
        let message = match turn.expect("a turn is left") {
            Turn::Call(step) => {
                let path = json!({"path": format!("src/p{step}.rs")});
                let arguments: JsonObject = serde_json::from_value(path).expect("an object");
                let call = CallToolRequestParams::new("read").with_arguments(arguments);
                Message::assistant().with_tool_request(format!("call_{step}"), Ok(call))
            }
            Turn::Say(text) => Message::assistant().with_text(text),
            Turn::Refuse => {
                return Err(ProviderError::ContextLengthExceeded("prompt is too long".into()));
            }
        };
        let counted = i32::try_from(tokens(messages) * self.counts / 10).ok();
        let usage = Usage {
            input_tokens: counted.filter(|_| self.counts > 0),
            output_tokens: Some(10),
            ..Usage::default()
        };
        let reported = ProviderUsage::new(model.model_name.clone(), usage);
        let message = message.with_generated_id();
        Ok(Box::pin(futures::stream::iter([Ok((Some(message), Some(reported)))])))
    }
}

/// The effects of this host.
enum Effect {
    Append(Message),
    Replace(Conversation),
    Usage(ProviderUsage),
}

impl From<Message> for Effect {
    fn from(message: Message) -> Self {
        Self::Append(message)
    }
}

impl From<Conversation> for Effect {
    fn from(conversation: Conversation) -> Self {
        Self::Replace(conversation)
    }
}

impl InferenceEffect for Effect {
    fn record_usage(usage: ProviderUsage) -> Self {
        Self::Usage(usage)
    }
}

impl MachineEffect for Effect {
    fn ensure_message_ids(&mut self) {
        let messages = match self {
            Self::Append(message) => std::slice::from_mut(message),
            Self::Replace(conversation) => conversation.messages_mut().as_mut_slice(),
            Self::Usage(_) => return,
        };
        for message in messages {
            *message = message.clone().with_generated_id_if_missing();
        }
    }
}

#[derive(Clone)]
struct Session(Conversation);

impl MachineSession for Session {
    fn id(&self) -> &str {
        "session"
    }

    fn conversation(&self) -> Option<&Conversation> {
        Some(&self.0)
    }
}

/// A host that stores its conversation as text, and the usage on the answer that it belongs to.
#[derive(Default)]
struct Host {
    stored: Mutex<String>,
    replaced: Mutex<usize>,
}

impl Host {
    fn conversation(&self) -> Conversation {
        let stored = self.stored.lock().expect("no panic");
        if stored.is_empty() {
            return Conversation::empty();
        }
        serde_json::from_str(&stored).expect("a conversation")
    }

    fn store(&self, conversation: &Conversation) {
        let text = serde_json::to_string(conversation).expect("a conversation");
        *self.stored.lock().expect("no panic") = text;
    }

    fn say(&self, text: &str) {
        let mut conversation = self.conversation();
        conversation.push(Message::user().with_text(text).with_generated_id());
        self.store(&conversation);
    }

    fn replaced(&self) -> usize {
        *self.replaced.lock().expect("no panic")
    }

    /// Runs the agent until it yields, in a process of its own: nothing is left but what was stored.
    async fn run(&self, folding: Folding<InferenceRunner<'_, Session, Effect>>) {
        self.run_on(Arc::new(folding)).await;
    }

    /// Runs the agent until it yields, in a process that runs it again.
    async fn run_on(&self, folding: Arc<Folding<InferenceRunner<'_, Session, Effect>>>) {
        let cancel = tokio_util::sync::CancellationToken::new();
        let (sender, _events) = tokio::sync::mpsc::unbounded_channel();
        let emit = Emitter::new(sender, cancel.clone());
        let tools = ToolOperation::new().with_provider(Arc::new(Files));
        let steps = vec![Step::Operation(Arc::new(tools)), Step::Inference(folding)];
        let machine = StateMachine::new(steps, cancel);
        machine.run(self, "session", &emit).await.expect("the agent runs");
    }
}

#[async_trait]
impl SessionLoader<Session> for Host {
    async fn load(&self, _id: &str) -> anyhow::Result<Session> {
        Ok(Session(self.conversation()))
    }
}

#[async_trait]
impl EffectHandler<Session, Effect> for Host {
    async fn apply_effects(
        &self,
        _session: &Session,
        effects: &mut [Effect],
        _emit: &Emitter,
    ) -> anyhow::Result<()> {
        let (mut conversation, mut usage) = (self.conversation(), None);
        for effect in effects {
            match effect {
                Effect::Usage(reported) => {
                    usage = Some(MessageUsage::from_provider_usage(reported, false));
                }
                Effect::Replace(replaced) => {
                    conversation = replaced.clone();
                    *self.replaced.lock().expect("no panic") += 1;
                }
                Effect::Append(message) => {
                    let mut message = message.clone();
                    message.metadata.usage = usage.take().map(Box::new);
                    conversation.push(message);
                }
            }
        }
        self.store(&conversation);
        Ok(())
    }
}

/// A tool that returns 2 KB of lines.
struct Files;

#[async_trait]
impl ToolProvider<Session> for Files {
    async fn tools(&self, _session: &Session) -> anyhow::Result<Vec<Tool>> {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let schema: JsonObject = serde_json::from_value(schema)?;
        Ok(vec![Tool::new("read", "Reads a file.", Arc::new(schema))])
    }

    async fn call(
        &self,
        _session: &Session,
        _id: &str,
        call: CallToolRequestParams,
        _emit: &Emitter,
    ) -> Result<CallToolResult, ErrorData> {
        let path =
            call.arguments.unwrap_or_default()["path"].as_str().unwrap_or_default().to_owned();
        let lines =
            (0..40).map(|line| format!("{path}:{line}: let part_{line} = next(tokens)?;\n"));
        Ok(CallToolResult::success(vec![ContentBlock::text(lines.collect::<String>())]))
    }
}

fn calls(steps: std::ops::Range<usize>) -> impl Iterator<Item = Turn> {
    steps.map(Turn::Call)
}

fn folding(
    provider: &Arc<Scripted>,
    window: u64,
) -> Folding<InferenceRunner<'static, Session, Effect>> {
    let provider: Arc<dyn Provider> = Arc::clone(provider) as Arc<dyn Provider>;
    let runner = InferenceRunner::new(provider, ModelConfig::new("model"));
    Folding::new(runner, ContextWindow::new(window))
}

fn texts(message: &Message) -> String {
    let text = |content: &MessageContent| match content {
        MessageContent::Text(text) => text.text.clone(),
        MessageContent::ToolResponse(response) => {
            let result = response.tool_result.as_ref().expect("no tool fails");
            let texts = result.content.iter().filter_map(|content| content.as_text());
            texts.map(|text| text.text.clone()).collect()
        }
        other => serde_json::to_string(other).expect("JSON"),
    };
    message.content.iter().map(text).collect()
}

fn tokens(messages: &[Message]) -> u64 {
    let messages: Vec<Ours> = messages.iter().map(|message| Ours::user(texts(message))).collect();
    ByteEstimate::TRIGGER.messages(&messages)
}

/// Asserts that each call is answered by the message after it, and each result answers a call of the
/// message before it.
fn assert_legal(messages: &[Message]) {
    let mut open: HashSet<&str> = HashSet::new();
    assert_eq!(messages.first().map(|first| &first.role), Some(&Role::User));
    for message in messages {
        assert!(!message.content.is_empty(), "an empty message");
        for id in message.get_tool_response_ids() {
            assert!(open.remove(id), "a result without its call: {id}");
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        open.extend(message.get_tool_request_ids());
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

#[tokio::test]
async fn sixty_steps_fit_a_window_that_they_exceed() {
    let provider = Scripted::new(calls(0..STEPS).chain([Turn::Say("The parser is mended.")]));
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, WINDOW)).await;
    let conversation = host.conversation();
    assert_eq!(conversation.last().map(texts).as_deref(), Some("The parser is mended."));
    let requests = provider.requests();
    assert_eq!(requests.len(), STEPS + 1);
    for request in &requests {
        assert_legal(request);
        assert!(tokens(request) <= WINDOW, "{} tokens", tokens(request));
        assert!(request.iter().any(|message| texts(message).contains(TASK)), "the task is kept");
    }
    let compactions = host.replaced();
    assert!((3..20).contains(&compactions), "{compactions} compactions");
    // Between two compactions a request continues the one before, so that a prompt cache serves it.
    let continued = requests.windows(2).filter(|pair| {
        let (one, next) = (&pair[0], &pair[1]);
        next.iter()
            .map(texts)
            .collect::<Vec<_>>()
            .starts_with(&one.iter().map(texts).collect::<Vec<_>>())
    });
    assert_eq!(continued.count(), STEPS - compactions);
}

#[tokio::test]
async fn the_user_sees_everything_and_what_stays_is_the_same_value() {
    let provider = Scripted::new(calls(0..STEPS).chain([Turn::Say("Done.")]));
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, WINDOW)).await;
    let conversation = host.conversation();
    let seen = conversation.user_visible_messages();
    // The task, each call and each result, and the answer: all as they were.
    assert_eq!(seen.len(), 1 + 2 * STEPS + 1);
    for (step, pair) in seen[1..=2 * STEPS].chunks(2).enumerate() {
        assert!(pair[0].get_tool_request_ids().contains(format!("call_{step}").as_str()));
        assert!(texts(&pair[1]).contains(&format!("src/p{step}.rs:39: let part_39")), "{step}");
    }
    let sent = conversation.agent_visible_messages();
    let own = sent.iter().filter(|message| message.is_user_visible());
    assert!(own.clone().count() > 2, "some messages stayed");
    assert!(own.clone().all(|message| seen.contains(message)));
    let added: Vec<String> = sent.iter().filter(|it| !it.is_user_visible()).map(texts).collect();
    let summaries = added.iter().filter(|text| text.contains("<conversation-summary>"));
    assert_eq!(summaries.count(), 1, "{added:?}");
}

#[tokio::test]
async fn a_later_process_continues_with_what_was_stored() {
    let provider = Scripted::new([]);
    let host = Host::default();
    host.say(TASK);
    for part in 0..6 {
        provider.add(calls(part * 10..part * 10 + 10).chain([Turn::Say("So far.")]));
        host.run(folding(&provider, WINDOW)).await;
        host.say(&format!("Go on. Rule {part}: never open drawer {part} of the shelf."));
    }
    provider.add([Turn::Say("Done.")]);
    host.run(folding(&provider, WINDOW)).await;
    let requests = provider.requests();
    requests.iter().for_each(|request| assert_legal(request));
    let last: String = requests.last().expect("a request").iter().map(texts).collect();
    for part in 0..6 {
        assert!(last.contains(&format!("never open drawer {part}")), "rule {part}:\n{last}");
    }
    assert!(last.contains(TASK));
    assert_eq!(last.matches("<conversation-summary>").count(), 1);
}

#[tokio::test]
async fn a_model_of_goose_writes_the_summaries() {
    let provider = Scripted::new(calls(0..STEPS).chain([Turn::Say("Done.")]));
    let writer = Scripted::new(vec![Turn::Say("They read files of the parser."); STEPS]);
    let model =
        GooseModel::new(Arc::clone(&writer) as Arc<dyn Provider>, ModelConfig::new("small"));
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, WINDOW).with_model(model)).await;
    assert!(writer.requests().len() >= host.replaced().min(3));
    for request in writer.requests() {
        assert!(tokens(&request) <= WINDOW, "{} tokens", tokens(&request));
    }
    let last = provider.requests().pop().expect("a request");
    assert_legal(&last);
    assert!(last.iter().any(|message| texts(message).contains("They read files of the parser.")));
}

#[tokio::test]
async fn a_refused_request_is_compacted_and_sent_again() {
    let turns = calls(0..12).chain([Turn::Refuse, Turn::Say("Done.")]);
    let provider = Scripted::new(turns);
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, 12_000)).await;
    let requests = provider.requests();
    let [refused, sent] = &requests[requests.len() - 2..] else { panic!("two requests") };
    assert_legal(sent);
    assert!(tokens(sent) * 10 <= tokens(refused) * 6, "{} of {}", tokens(sent), tokens(refused));
    assert_eq!(host.conversation().last().map(texts).as_deref(), Some("Done."));
}

#[tokio::test]
async fn a_provider_that_refuses_everything_ends_the_turn_with_its_error() {
    let provider = Scripted::new(calls(0..12).chain(vec![Turn::Refuse; 20]));
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, 12_000)).await;
    assert!(provider.requests().len() <= 12 + 4, "{} requests", provider.requests().len());
    let conversation = host.conversation();
    let last = conversation.last().expect("a message");
    assert!(last.error_kind().is_some(), "{last:?}");
    // What was compacted for it in vain is taken back: the task, the calls and the results.
    assert_eq!(host.replaced(), 2);
    assert_eq!(conversation.len(), 1 + 2 * 12 + 1);
    assert_eq!(conversation.agent_visible_messages().len(), 1 + 2 * 12);
    assert_eq!(conversation.user_visible_messages().len(), conversation.len());
}

/// A digest that never ends while it is held, and the number of the last compaction.
#[derive(Debug, Default)]
struct Held {
    digest: Digest,
    is_held: AtomicBool,
    is_waiting: AtomicBool,
    last: Mutex<Option<CompactionId>>,
}

#[async_trait]
impl CompactionStrategy for Held {
    fn name(&self) -> &str {
        "held"
    }

    async fn propose(&self, view: &View, ask: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        *self.last.lock().expect("no panic") = view.brief.compaction;
        if self.is_held.load(Relaxed) {
            self.is_waiting.store(true, Relaxed);
            return std::future::pending().await;
        }
        self.digest.propose(view, ask).await
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_while_it_compacts_loses_nothing() {
    let provider = Scripted::new(calls(0..20).chain([Turn::Say("Done.")]));
    let strategy = Arc::new(Held::default());
    let folding = Arc::new(folding(&provider, WINDOW).with_strategy(strategy.clone()));
    let host = Host::default();
    host.say(TASK);
    host.run_on(Arc::clone(&folding)).await;
    let last = || strategy.last.lock().expect("no panic").expect("a compaction");
    let before = last();
    strategy.is_held.store(true, Relaxed);
    host.say(&"And the tests? ".repeat(400));
    let mut run = Box::pin(host.run_on(Arc::clone(&folding)));
    std::future::poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending());
        cx.waker().wake_by_ref();
        if strategy.is_waiting.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    drop(run);
    strategy.is_held.store(false, Relaxed);
    provider.add([Turn::Say("They pass.")]);
    host.run_on(folding).await;
    assert_eq!(host.conversation().last().map(texts).as_deref(), Some("They pass."));
    assert_eq!(last(), before.next());
}

#[tokio::test]
async fn the_counts_of_the_provider_are_learnt() {
    let turns: VecDeque<Turn> = calls(0..STEPS).chain([Turn::Say("Done.")]).collect();
    // It counts twice as many tokens as the estimate.
    let provider =
        Arc::new(Scripted { turns: Mutex::new(turns), counts: 20, ..Scripted::default() });
    let host = Host::default();
    host.say(TASK);
    host.run(folding(&provider, WINDOW)).await;
    let requests = provider.requests();
    assert_eq!(requests.len(), STEPS + 1);
    let over = requests.iter().filter(|request| tokens(request) * 2 > WINDOW);
    assert_eq!(over.count(), 0);
}
