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
    Thread, WireFormat, async_trait,
    compact::{CompactError, Replaced},
    message::{ContentBlock, Delta, ModelError, ModelErrorKind, StopReason},
    model::model_of,
    testing::{ExtractiveModel, Scripted, ScriptedModel},
};
use threadfold_testing::conformance::{self, Law, Served, Stubbed};

use crate::support::identity::{Fault, Identity};

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

/// Every codec with bodies in its normal form. One line each.
const CODECS: &[(&dyn WireFormat, &[&str])] = &[
    (&Identity(Fault::None), BODIES),
    (&Dialect::Anthropic, ANTHROPIC_BODIES),
    (&Dialect::BedrockConverse, CONVERSE_BODIES),
    (&Dialect::OpenAiChat, CHAT_BODIES),
    (&Dialect::OpenAiResponses, RESPONSES_BODIES),
    (&Dialect::Gemini, GEMINI_BODIES),
];

const ANTHROPIC_BODIES: &[&str] = &[
    r#"{"model":"m","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":"hi"}]}"#,
    r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#,
];

const CONVERSE_BODIES: &[&str] = &[
    r#"{"modelId":"m","system":[{"text":"be brief"}],"inferenceConfig":{"maxTokens":9},"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#,
    r#"{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}]}"#,
];

const CHAT_BODIES: &[&str] = &[
    r#"{"messages":[]}"#,
    r#"{"model":"m","messages":[{"role":"developer","content":"be brief"},{"role":"user","content":"hi"}]}"#,
];

const GEMINI_BODIES: &[&str] = &[
    r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    r#"{"contents":[{"parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]}],"systemInstruction":{"parts":[{"text":"be brief"}]},"tools":[{"functionDeclarations":[{"name":"f"}],"googleSearch":{}}]}"#,
];

const RESPONSES_BODIES: &[&str] = &[
    r#"{"input":[]}"#,
    r#"{"model":"m","input":"hi"}"#,
    r#"{"model":"m","instructions":"be brief","input":[{"role":"developer","content":"and kind"},{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"https://example.org/a.png","detail":"auto"}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"x"}]},{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"b"}]}],"tools":[{"type":"function","name":"read","parameters":{},"strict":false},{"type":"web_search"}]}"#,
];

const BODIES: &[&str] = &[
    r#"{"messages":[]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#,
];

#[test]
fn our_codecs_conform() {
    for (codec, bodies) in CODECS {
        let outcome = conformance::wire_format(*codec, bodies);
        outcome.unwrap_or_else(|breach| panic!("{}: {breach}", codec.name()));
    }
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

#[test]
fn a_broken_codec_is_caught() {
    let with_bodies = [
        (Fault::ForgetsFields, Law::UnknownFieldsSurvive),
        (Fault::ForgetsBody, Law::BodyComesBack),
        (Fault::AdjustsAlways, Law::UntouchedIsUnadjusted),
    ];
    for (fault, law) in with_bodies {
        let bodies = if fault == Fault::ForgetsBody {
            BODIES.get(1..).unwrap()
        } else {
            BODIES.get(..1).unwrap()
        };
        let breach = conformance::wire_format(&Identity(fault), bodies).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let with_threads = [
        (Fault::WritesIllegal, Law::WrittenIsLegal),
        (Fault::WritesNonsense, Law::WrittenReads),
        (Fault::NeverTheSame, Law::WritingIsStable),
        (Fault::LosesTexts, Law::NothingIsLostSilently),
    ];
    for (fault, law) in with_threads {
        let breach = conformance::wire_format(&Identity(fault), &[]).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let refused = conformance::wire_format(&Identity(Fault::None), &["{"]).unwrap_err();
    assert_eq!(refused.law, Law::BodyComesBack);
}

#[test]
fn a_breach_shows_the_smallest_case() {
    let breach = conformance::wire_format(&Identity(Fault::LosesTexts), &[]).unwrap_err();
    let blocks = |block: &ContentBlock| block.as_text().is_some();
    let thread = threadfold_testing::notation::parse(&breach.input).unwrap();
    assert_eq!(thread.iter().flat_map(|m| &m.content).filter(|block| blocks(block)).count(), 1);
    assert!(
        breach.to_string().starts_with("an adjustment must name every message that loses text")
    );
}
