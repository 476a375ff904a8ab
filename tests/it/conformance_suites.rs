//! Runs the conformance suites on the implementations of this crate, and on broken ones that they
//! must catch.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{
    StreamExt,
    executor::block_on,
    stream::{self, BoxStream},
};
use threadfold::wire::{Dialect, EncodeOptions};
use threadfold::{
    Answer, CompactReport, Message, Model, ModelAgent, ProviderThread, Replacement, Request, Role,
    Thread, async_trait,
    compact::{CompactError, Replaced},
    message::{ContentBlock, Delta, ModelError, ModelErrorKind, StopReason},
    model::model_of,
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::conformance::{self, Law, Served, Stubbed};

#[test]
fn our_models_conform() {
    let agent = ModelAgent::new(Arc::new(ExtractiveModel));
    let models: [Box<dyn Model + '_>; 6] = [
        Box::new(ScriptedModel::new(["hello there, how are you today, my friend?"; 5])),
        Box::new(ExtractiveModel),
        Box::new(model_of(&agent)),
        Box::new(ScriptedModel::repeating([Scripted::Slow(said())])),
        Box::new(ScriptedModel::repeating([Scripted::Fails])),
        Box::new(OnlyCompletes),
    ];
    for model in models {
        block_on(conformance::model(model.as_ref())).unwrap_or_else(|breach| panic!("{breach}"));
    }
}

#[test]
fn a_native_array_conforms() {
    let make = || Native { law: None, native: Vec::new() };
    conformance::provider_thread(make, held, anew).unwrap_or_else(|breach| panic!("{breach}"));
}

/// A model without a stream of its own.
#[derive(Debug)]
struct OnlyCompletes;

#[async_trait]
impl Model for OnlyCompletes {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        Ok(hello())
    }
}

fn hello() -> Answer {
    Answer::new(Message::assistant("hello"), StopReason::EndTurn, None)
}

fn failure() -> ModelError {
    ModelError::new(ModelErrorKind::Other, "broken")
}

/// A model whose streams go wrong in one way.
#[derive(Debug)]
struct Broken {
    law: Law,
    asked: AtomicUsize,
}

#[async_trait]
impl Model for Broken {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        if self.law == Law::CompleteAgrees { Err(failure()) } else { Ok(hello()) }
    }

    fn stream(&self, _: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let text = |text: &str| Ok(Delta::Text { text: text.into() });
        let turn = || Ok(Delta::Answer { answer: hello() });
        let mut of_user = hello();
        of_user.message.make_mut().role = Role::User;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let deltas = match self.law {
            Law::StreamEnds => vec![text("hello")],
            Law::NothingFollows => vec![turn(), turn()],
            Law::PiecesJoin => vec![text("hel"), turn()],
            Law::AnswerIsAssistants => vec![Ok(Delta::Answer { answer: of_user })],
            Law::DropIsHarmless if asked > 1 => vec![Err(failure())],
            _ => vec![text("hel"), text("lo"), turn()],
        };
        stream::iter(deltas).boxed()
    }
}

#[test]
fn a_broken_model_is_caught() {
    let laws = [
        Law::StreamEnds,
        Law::NothingFollows,
        Law::PiecesJoin,
        Law::AnswerIsAssistants,
        Law::CompleteAgrees,
        Law::DropIsHarmless,
    ];
    for law in laws {
        let model = Broken { law, asked: AtomicUsize::new(0) };
        let breach = block_on(conformance::model(&model)).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let cut = ScriptedModel::repeating([Scripted::Cut(said())]);
    // `complete` of a cut stream is an error, but the stream itself has no end.
    assert_eq!(block_on(conformance::model(&cut)).unwrap_err().law, Law::StreamEnds);
}

/// What an adapter gets wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lossy {
    Nothing,
    System,
    Tools,
    Calls,
    Results,
    Order,
    MostTokens,
    AnsweredCalls,
    Usage,
    Stop,
    Overflow,
    Break,
}

/// A model that changes what it sends on and what it gets.
#[derive(Debug)]
struct Through(Lossy, ScriptedModel);

#[async_trait]
impl Model for Through {
    async fn complete(&self, mut request: Request) -> Result<Answer, ModelError> {
        let mut messages = request.messages.to_vec();
        match self.0 {
            Lossy::System => request.system = Arc::default(),
            Lossy::Tools => request.tools = Arc::default(),
            Lossy::MostTokens => request.max_output = None,
            Lossy::Order => messages.reverse(),
            Lossy::Calls => messages.retain(|message| message.tool_uses().next().is_none()),
            Lossy::Results => messages.retain(|message| message.tool_results().next().is_none()),
            _ => {}
        }
        request.messages = messages.into();
        let mut turn = self.1.complete(request).await.map_err(|error| match self.0 {
            Lossy::Overflow if error.is_overflow() => {
                ModelError::new(ModelErrorKind::Other, "bad request")
            }
            _ => error,
        })?;
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse(_));
        match self.0 {
            Lossy::AnsweredCalls => turn.message.make_mut().content.retain(|it| !is_call(it)),
            Lossy::Usage => turn.usage = None,
            Lossy::Stop => turn.stop_reason = StopReason::EndTurn,
            _ => {}
        }
        turn.message.make_mut().usage = None;
        Ok(Answer::new(turn.message, turn.stop_reason, turn.usage))
    }
}

#[test]
fn an_adapter_that_drops_anything_is_caught() {
    let faults = [
        (Lossy::Nothing, None),
        (Lossy::System, Some(Law::RequestIsWhole)),
        (Lossy::Tools, Some(Law::RequestIsWhole)),
        (Lossy::Calls, Some(Law::RequestIsWhole)),
        (Lossy::Results, Some(Law::RequestIsWhole)),
        (Lossy::Order, Some(Law::RequestIsWhole)),
        (Lossy::MostTokens, Some(Law::RequestIsWhole)),
        (Lossy::AnsweredCalls, Some(Law::AnswerIsWhole)),
        (Lossy::Usage, Some(Law::AnswerIsWhole)),
        (Lossy::Stop, Some(Law::AnswerIsWhole)),
        (Lossy::Overflow, Some(Law::OverflowIsTold)),
        (Lossy::Break, Some(Law::BreakIsRetryable)),
    ];
    for (fault, law) in faults {
        let stub = |served: &Served| {
            let answer = match served {
                Served::Answer(turn) => Scripted::from(turn.clone()),
                Served::CutOff(turn) if fault == Lossy::Break => turn.clone().into(),
                Served::CutOff(_) => ModelError::cut_short().into(),
                Served::TooLong(window) => {
                    let (limit, found) = (Some(window.tokens()), None);
                    let kind = ModelErrorKind::Overflow { limit, found, output: None };
                    ModelError::new(kind, "too long").into()
                }
            };
            let model = ScriptedModel::repeating([answer]);
            let seen = model.clone();
            let received = move || {
                let newest = seen.requests().pop().unwrap();
                let body = Dialect::Anthropic.encode(&newest, &EncodeOptions::default()).body;
                body.as_str().to_owned()
            };
            Stubbed::new(Through(fault, model), received)
        };
        let found = block_on(conformance::adapter(stub)).err().map(|breach| breach.law);
        assert_eq!(found, law, "{fault:?}");
    }
}

fn said() -> Answer {
    Answer::new(Message::assistant("It is done, I said."), StopReason::EndTurn, None)
}

/// The messages as its provider reads them, which go wrong in one way.
#[derive(Debug)]
struct Native {
    law: Option<Law>,
    native: Vec<String>,
}

fn native(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

fn anew(messages: &[Message]) -> Vec<String> {
    messages.iter().map(native).collect()
}

fn held(adapter: &Native) -> Vec<String> {
    adapter.native.clone()
}

impl ProviderThread for Native {
    fn appended(&mut self, message: &Message) {
        self.native.push(native(message));
    }

    fn rewritten(&mut self, replaced: &[Replaced<'_>], _thread: &[Message]) {
        for Replaced { at, messages } in replaced.iter().rev() {
            let at = if self.law == Some(Law::FollowsThread) { 0..at.end } else { at.clone() };
            drop(self.native.splice(at, messages.iter().map(native)));
        }
    }

    fn compact(
        &mut self,
        thread: &mut Thread,
        replacements: &[Replacement],
    ) -> Result<CompactReport, CompactError> {
        let plan = thread.plan(replacements, &threadfold::compact::CompactOptions::default());
        if plan.is_err() && self.law == Some(Law::ErrorsChangeNothing) {
            self.native.clear();
        }
        let (plan, before) = (plan?, thread.size());
        if self.law != Some(Law::Compacts) {
            self.apply(thread, &plan).unwrap();
        }
        let counter = thread.counter().as_ref();
        Ok(CompactReport::new(before, thread.messages(), &plan, counter))
    }
}

#[test]
fn a_broken_provider_thread_is_caught() {
    for law in [Law::Compacts, Law::ErrorsChangeNothing, Law::FollowsThread] {
        let make = || Native { law: Some(law), native: Vec::new() };
        let breach = conformance::provider_thread(make, held, anew).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let full = || Native { law: None, native: vec!["old".into()] };
    assert_eq!(conformance::provider_thread(full, held, anew).unwrap_err().law, Law::NewIsEmpty);
}
