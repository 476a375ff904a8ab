//! The conformance suite for adapters in front of a stub of their provider.

use std::fmt;

use futures::StreamExt;
use serde_json::{Value, json};
use threadfold::{
    message::{
        Answer, ContentBlock, ContextUpdate, ContextWindow, Delta, Message, ModelError,
        ModelErrorKind, Request, Role, StopReason, Summary, Text, ToolChoice, ToolResult, ToolSpec,
        ToolUse, Usage,
    },
    model::Model,
};

use super::{
    law::{Law, Result},
    model::streamed,
};

/// What the stub of a provider answers to every request, in the provider's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// An answer with these texts and calls, this usage and this stop reason.
    Answer(Answer),
    /// The beginning of this answer. Then the connection ends.
    CutOff(Answer),
    /// A refusal because the prompt exceeds this window.
    TooLong(ContextWindow),
}

/// An adapter in front of a stub of its provider.
#[must_use]
pub struct Stubbed {
    model: Box<dyn Model>,
    received: Box<dyn Fn() -> String + Send + Sync>,
}

impl Stubbed {
    /// Returns the adapter. `received` returns the body of the newest request that the stub got.
    ///
    /// [`adapter`] has an example.
    pub fn new(
        model: impl Model + 'static,
        received: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self { model: Box::new(model), received: Box::new(received) }
    }
}

impl fmt::Debug for Stubbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stubbed").field("model", &self.model).finish_non_exhaustive()
    }
}

/// Tests an adapter against a stub of its provider: everything of a thread reaches the provider in
/// its order (system prompt, tools, single and parallel calls, results, summaries, reminders,
/// context updates, checkpoints), also in a request that forbids calls, as the second one for a summary
/// does, which may leave the tools out; everything of an answer comes back (texts, calls, usage, stop reason), whole and streamed; an
/// answer that breaks off is a retryable error; and a refusal for the length is an overflow.
/// [`model`](super::model()) tests how streams end.
///
/// `stub` starts a stub that answers every request with what is served, whether a stream was asked
/// for or not.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::message::{ModelError, ModelErrorKind};
/// use threadfold::testing::{Scripted, ScriptedModel};
/// use threadfold_testing::conformance::{self, Served, Stubbed};
/// use threadfold::wire::{Dialect, EncodeOptions};
///
/// let stub = |served: &Served| {
///     let answer: Scripted = match served {
///         Served::Answer(answer) => answer.clone().into(),
///         Served::CutOff(_) => ModelError::cut_short().into(),
///         Served::TooLong(window) => {
///             let (limit, found) = (Some(window.tokens()), None);
///             ModelError::new(ModelErrorKind::Overflow { limit, found, output: None }, "").into()
///         }
///     };
///     let model = ScriptedModel::repeating([answer]);
///     let seen = model.clone();
///     // With a provider this is the body that its stub received.
///     let received = move || {
///         let newest = seen.requests().pop().unwrap_or_default();
///         Dialect::Anthropic.encode(&newest, &EncodeOptions::default()).body.as_str().to_owned()
///     };
///     Stubbed::new(model, received)
/// };
/// block_on(conformance::adapter(stub))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn adapter(mut stub: impl FnMut(&Served) -> Stubbed) -> Result<()> {
    let served =
        Served::Answer(Answer::new(Message::assistant("Done."), StopReason::EndTurn, None));
    let summarised = Request { tool_choice: Some(ToolChoice::None), ..request() };
    for (request, stream) in [(request(), false), (request(), true), (summarised, true)] {
        let may_call = request.tool_choice.is_none();
        let stubbed = stub(&served);
        let answered = asked(&stubbed, request, stream).await?;
        answered.map_err(|error| Law::AnswerIsWhole.breach(show(&served), "an answer", error))?;
        check_received(&(stubbed.received)(), may_call)?;
    }
    for answer in answers() {
        let served = Served::Answer(answer.clone());
        for stream in [false, true] {
            let found = asked(&stub(&served), request(), stream).await?;
            check_answer(&answer, found.map_err(|error| error.to_string()), stream)?;
        }
        check_pieces(&answer, &stub(&served)).await?;
    }
    for answer in answers() {
        let served = Served::CutOff(answer);
        for stream in [false, true] {
            let found = asked(&stub(&served), request(), stream).await?;
            if !found.as_ref().is_err_and(ModelError::is_retryable) {
                let expected = "a retryable error";
                return Err(Law::BreakIsRetryable.breach(show(&served), expected, show(&found)));
            }
        }
    }
    let window = ContextWindow::new(8_192);
    let served = Served::TooLong(window);
    for stream in [false, true] {
        let found = asked(&stub(&served), request(), stream).await?.map_err(|error| error.kind);
        let is_told = match &found {
            Err(ModelErrorKind::Overflow { limit, .. }) => {
                limit.is_none_or(|limit| limit == window.tokens())
            }
            _ => false,
        };
        if !is_told {
            return Err(Law::OverflowIsTold.breach(show(&served), "an overflow", show(&found)));
        }
    }
    Ok(())
}

async fn asked(
    stubbed: &Stubbed,
    request: Request,
    stream: bool,
) -> Result<std::result::Result<Answer, ModelError>> {
    match stream {
        true => streamed(stubbed.model.stream(request)).await,
        false => Ok(stubbed.model.complete(request).await),
    }
}

fn show(value: &impl fmt::Debug) -> String {
    format!("{value:?}")
}

const MAX_OUTPUT: u64 = 321;
const TOOL: &str = "look_up";

/// What the tool is for, which a request that forbids calls may leave out.
const TOOL_TEXT: &str = "Looks a word up.";

/// What stands anywhere in a body, and what stands in the order of the thread.
const ANYWHERE: [&str; 4] = ["Answer as a sailor would.", TOOL, "which_word", "in_which_book"];
const IN_ORDER: [&str; 16] = [
    "They spoke of ropes before.",
    "What is a sheet?",
    "Be brief, as agreed.",
    "<checkpoint:a1b2c3>",
    "I look it up, \"ein Tau\" – 漢字.",
    "schoot",
    "A rope that controls a sail.\nNot a sail.",
    "And in that one?",
    "zeil",
    "No such word in it.",
    "Both at once, then.",
    "sheave",
    "halyard",
    "A wheel in a block.",
    "A rope that hoists a sail.",
    "docs/ropes.md",
];

/// What the user typed last, after the results and the files that changed meanwhile.
const LAST: &str = "So what is it, then?";

fn call(id: &str, word: &str) -> ToolUse {
    ToolUse::new(id, TOOL, json!({"which_word": word, "in_which_book": 7}))
}

/// A request with everything that a thread may hold and every provider can carry.
fn request() -> Request {
    let [summary, ask, remind, _, look, first, found, more, second, missing, rest @ ..] = IN_ORDER;
    let [both, third, fourth, wheel, hoist, path] = rest;
    let ([system, tool, word, book], description) = (ANYWHERE, TOOL_TEXT);
    let schema = json!({"type": "object", "properties": {word: {"type": "string"}, book: {"type": "integer"}}});
    let checkpoint = "a1b2c3".parse().map(ContentBlock::checkpoint);
    let mut asked = vec![ContentBlock::text(ask), ContentBlock::reminder(remind)];
    asked.extend(checkpoint);
    let answer = |text: &str, call: ToolUse| {
        Message::new(Role::Assistant, vec![ContentBlock::text(text), call.into()])
    };
    let messages = vec![
        Message::summary(Role::User, Summary::new(summary)),
        Message::assistant("I see."),
        Message::new(Role::User, asked),
        answer(look, call("call_1", first)),
        Message::new(Role::User, vec![ToolResult::text("call_1", found).into()]),
        answer(more, call("call_2", second)),
        Message::new(Role::User, vec![ToolResult::error("call_2", missing).into()]),
        Message::new(
            Role::Assistant,
            vec![
                ContentBlock::text(both),
                call("call_3", third).into(),
                call("call_4", fourth).into(),
            ],
        ),
        Message::new(
            Role::User,
            vec![
                ToolResult::text("call_3", wheel).into(),
                ToolResult::text("call_4", hoist).into(),
                ContextUpdate::new(vec![path.into()], "It changed meanwhile.").into(),
                ContentBlock::text(LAST),
            ],
        ),
    ];
    let tools = vec![ToolSpec::new(tool, description, schema)];
    Request {
        max_output: Some(MAX_OUTPUT),
        tools: tools.into(),
        ..Request::new(messages).with_system(system)
    }
}

/// The answers that an agent needs whole.
fn answers() -> [Answer; 3] {
    let usage = |input| Some(Usage::new(input, 56));
    let calls = vec![
        ContentBlock::text("I look twice."),
        call("call_a1", "Flaschenzug – 漢字").into(),
        call("call_b2", "a \"quoted\" \\ word").into(),
    ];
    [
        Answer::new(Message::assistant("A sheet is a rope."), StopReason::EndTurn, usage(1_234)),
        Answer::new(Message::new(Role::Assistant, calls), StopReason::ToolUse, usage(2_345)),
        Answer::new(Message::assistant("A sheet is a"), StopReason::MaxTokens, usage(3_456)),
    ]
}

/// Checks that the body of [`request`] holds everything, in the order of the thread.
fn check_received(body: &str, may_call: bool) -> Result<()> {
    let breach = |expected: String| Err(Law::RequestIsWhole.breach("a request", expected, body));
    let Ok(value) = serde_json::from_str(body) else { return breach("JSON".into()) };
    let (mut texts, mut numbers) = (String::new(), Vec::new());
    collect(&value, &mut texts, &mut numbers);
    let mut anywhere = ANYWHERE.iter().chain(may_call.then_some(&TOOL_TEXT));
    if let Some(missing) = anywhere.find(|text| !texts.contains(**text)) {
        return breach(format!("the text {missing:?}"));
    }
    if !numbers.contains(&MAX_OUTPUT) {
        return breach(format!("{MAX_OUTPUT} as the most tokens of the answer"));
    }
    let mut rest = texts.as_str();
    for text in IN_ORDER.into_iter().chain([LAST]) {
        // An input may be a text of JSON in the body, so it is looked for without its marks.
        let Some((_, after)) = rest.split_once(text) else {
            return breach(format!("the text {text:?} after the one before it"));
        };
        rest = after;
    }
    Ok(())
}

/// Collects the keys, texts and numbers of a body, in its order.
fn collect(value: &Value, texts: &mut String, numbers: &mut Vec<u64>) {
    match value {
        Value::String(text) => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Number(number) => numbers.extend(number.as_u64()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts, numbers)),
        Value::Object(fields) => {
            for (key, item) in fields {
                texts.push_str(key);
                texts.push('\n');
                collect(item, texts, numbers);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn value_of(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// What of an answer must come back. Providers may give their own ids.
#[derive(Debug, PartialEq)]
struct Essence {
    text: String,
    calls: Vec<(Text, Value)>,
    stop_reason: StopReason,
    usage: Option<(u64, u64)>,
}

impl Essence {
    fn of(answer: &Answer) -> Self {
        let calls = answer.message.tool_uses();
        let calls = calls.map(|call| (call.name.clone(), value_of(call.input.as_str())));
        Self {
            text: answer.message.texts().map(|text| text.as_str()).collect(),
            calls: calls.collect(),
            stop_reason: answer.stop_reason.clone(),
            usage: answer.usage.map(|usage| (usage.input, usage.output)),
        }
    }
}

fn check_answer(
    served: &Answer,
    found: std::result::Result<Answer, String>,
    stream: bool,
) -> Result<()> {
    let input = format!("{served:?}, {}", if stream { "streamed" } else { "whole" });
    let expected = Essence::of(served);
    let found = found.map_err(|error| Law::AnswerIsWhole.breach(&input, show(&expected), error))?;
    let mut ids: Vec<&str> = found.message.tool_uses().map(|call| call.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if Essence::of(&found) != expected {
        return Err(Law::AnswerIsWhole.breach(input, show(&expected), show(&Essence::of(&found))));
    }
    if ids.len() != count || ids.iter().any(|id| id.is_empty()) {
        return Err(Law::AnswerIsWhole.breach(input, "an id for each call", show(&ids)));
    }
    Ok(())
}

/// Checks that the pieces of calls, if a stream has any, join to their inputs.
async fn check_pieces(served: &Answer, stubbed: &Stubbed) -> Result<()> {
    let mut deltas = stubbed.model.stream(request());
    let mut pieces: Vec<(Text, String)> = Vec::new();
    while let Some(Ok(delta)) = deltas.next().await {
        if let Delta::ToolInput { id, text } = delta {
            match pieces.iter_mut().find(|(known, _)| *known == id) {
                Some((_, input)) => input.push_str(&text),
                None => pieces.push((id, text.to_string())),
            }
        }
    }
    let inputs = served.message.tool_uses().map(|call| value_of(call.input.as_str()));
    let found = pieces.iter().map(|(_, input)| value_of(input));
    let (expected, found): (Vec<Value>, Vec<Value>) = (inputs.collect(), found.collect());
    if found.is_empty() || found == expected {
        return Ok(());
    }
    Err(Law::PiecesJoin.breach(show(served), show(&expected), show(&pieces)))
}
