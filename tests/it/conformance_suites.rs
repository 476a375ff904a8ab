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
use threadfold::wire::Dialect;
use threadfold::{
    CompactReport, Message, Model, ModelAgent, ProviderThread, Replacement, Request, Role, Thread,
    Turn, WireFormat, async_trait,
    compact::{CompactError, Plan},
    message::{ContentBlock, Delta, ModelError, ModelErrorKind, StopReason},
    model::model_of,
    testing::{
        Answer, ExtractiveModel, ScriptedModel,
        conformance::{self, Law},
    },
};

use crate::support::identity::{Fault, Identity};

#[test]
fn our_models_conform() {
    let agent = ModelAgent::new(Arc::new(ExtractiveModel));
    let models: [Box<dyn Model + '_>; 6] = [
        Box::new(ScriptedModel::new(["hello there, how are you today, my friend?"; 5])),
        Box::new(ExtractiveModel),
        Box::new(model_of(&agent)),
        Box::new(ScriptedModel::repeating([Answer::Slow(said())])),
        Box::new(ScriptedModel::repeating([Answer::Fails])),
        Box::new(OnlyCompletes),
    ];
    for model in models {
        block_on(conformance::model(model.as_ref())).unwrap_or_else(|breach| panic!("{breach}"));
    }
}

#[test]
fn our_conversations_conform() {
    let make = || Box::new(ModelAgent::new(Arc::new(ExtractiveModel))) as Box<dyn ProviderThread>;
    conformance::provider_thread(make).unwrap_or_else(|breach| panic!("{breach}"));
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
    async fn complete(&self, _: Request) -> Result<Turn, ModelError> {
        Ok(hello())
    }
}

fn hello() -> Turn {
    Turn::new(Message::assistant("hello"), StopReason::EndTurn, None)
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
    async fn complete(&self, _: Request) -> Result<Turn, ModelError> {
        if self.law == Law::CompleteAgrees { Err(failure()) } else { Ok(hello()) }
    }

    fn stream(&self, _: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let text = |text: &str| Ok(Delta::Text { text: text.into() });
        let turn = || Ok(Delta::Turn { turn: hello() });
        let mut of_user = hello();
        of_user.message.make_mut().role = Role::User;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let deltas = match self.law {
            Law::StreamEnds => vec![text("hello")],
            Law::NothingFollows => vec![turn(), turn()],
            Law::PiecesJoin => vec![text("hel"), turn()],
            Law::TurnIsAnswer => vec![Ok(Delta::Turn { turn: of_user })],
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
        Law::TurnIsAnswer,
        Law::CompleteAgrees,
        Law::DropIsHarmless,
    ];
    for law in laws {
        let model = Broken { law, asked: AtomicUsize::new(0) };
        let breach = block_on(conformance::model(&model)).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let cut = ScriptedModel::repeating([Answer::Cut(said())]);
    // `complete` of a cut stream is an error, but the stream itself has no end.
    assert_eq!(block_on(conformance::model(&cut)).unwrap_err().law, Law::StreamEnds);
}

fn said() -> Turn {
    Turn::new(Message::assistant("It is done, I said."), StopReason::EndTurn, None)
}

/// A conversation that goes wrong in one way.
#[derive(Debug)]
struct BrokenThread {
    law: Law,
    thread: Thread,
}

impl ProviderThread for BrokenThread {
    fn thread(&self) -> &Thread {
        &self.thread
    }

    fn thread_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    fn rewritten(&mut self) {}

    fn push(&mut self, message: Message) {
        if self.law == Law::EpochTellsRewrites {
            let messages = self.thread.messages().clone();
            self.thread.truncate(0);
            self.thread.extend(messages.iter().cloned());
        }
        self.thread.push(message);
    }

    fn truncate(&mut self, len: usize) {
        self.thread.truncate(if self.law == Law::FollowsThread { len + 1 } else { len });
    }

    fn compact(&mut self, replacements: &[Replacement]) -> Result<CompactReport, CompactError> {
        let plan = self.thread.plan(replacements, &threadfold::compact::CompactOptions::default());
        if plan.is_err() && self.law == Law::ErrorsChangeNothing {
            self.thread.truncate(0);
        }
        let plan = plan?;
        let before = self.thread.size();
        if self.law != Law::Compacts {
            self.thread.apply(&plan).unwrap();
        }
        let counter = self.thread.counter().as_ref();
        Ok(CompactReport::new(before, self.thread.messages(), &plan, counter))
    }

    fn apply(&mut self, plan: &Plan) -> Result<Vec<Message>, CompactError> {
        self.thread.apply(plan)
    }
}

#[test]
fn a_broken_conversation_is_caught() {
    let laws =
        [Law::Compacts, Law::ErrorsChangeNothing, Law::FollowsThread, Law::EpochTellsRewrites];
    for law in laws {
        let make = || -> Box<dyn ProviderThread> {
            Box::new(BrokenThread { law, thread: Thread::default() })
        };
        let breach = conformance::provider_thread(make).unwrap_err();
        assert_eq!(breach.law, law, "{breach}");
    }
    let full = || -> Box<dyn ProviderThread> {
        let thread = [Message::user("old")].into_iter().collect();
        Box::new(BrokenThread { law: Law::NewIsEmpty, thread })
    };
    assert_eq!(conformance::provider_thread(full).unwrap_err().law, Law::NewIsEmpty);
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
    let thread = threadfold::testing::notation::parse(&breach.input).unwrap();
    assert_eq!(thread.iter().flat_map(|m| &m.content).filter(|block| blocks(block)).count(), 1);
    assert!(
        breach.to_string().starts_with("an adjustment must name every message that loses text")
    );
}
