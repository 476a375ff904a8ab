//! The laws of codecs: every dialect must obey them, and a codec that breaks one must be caught.

use std::{cell::Cell, sync::Arc};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use serde_json::Value;
use threadfold::{
    Message, Request, Role, legality,
    message::{Extra, Json, ToolResult},
    wire::{Adjustment, Change, DecodeOptions, Dialect, EncodeOptions, Encoded, WireError},
};
use threadfold_testing::{
    generate::{junk_thread, legal_thread},
    notation,
};

/// Every dialect with bodies in its normal form. One line each.
const BODIES: [(Dialect, &[&str]); 5] = [
    (Dialect::Anthropic, ANTHROPIC_BODIES),
    (Dialect::BedrockConverse, CONVERSE_BODIES),
    (Dialect::Gemini, GEMINI_BODIES),
    (Dialect::OpenAiChat, CHAT_BODIES),
    (Dialect::OpenAiResponses, RESPONSES_BODIES),
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

#[test]
fn every_dialect_obeys_the_laws() {
    assert_eq!(BODIES.map(|(dialect, _)| dialect), Dialect::ALL);
    for (dialect, bodies) in BODIES {
        let outcome = check(&Codec::new(dialect, None), bodies);
        outcome.unwrap_or_else(|breach| panic!("{}: {breach:#?}", dialect.name()));
    }
}

#[test]
fn a_broken_codec_is_caught() {
    let with_bodies = [
        (Fault::ForgetsFields, r#"{"messages":[]}"#, Law::UnknownFieldsSurvive),
        (
            Fault::ForgetsBody,
            r#"{"messages":[{"role":"user","content":"hi"}]}"#,
            Law::BodyComesBack,
        ),
        (Fault::AdjustsAlways, r#"{"messages":[]}"#, Law::UntouchedIsUnadjusted),
    ];
    for (fault, body, law) in with_bodies {
        let breach = check(&Codec::new(Dialect::OpenAiChat, Some(fault)), &[body]).unwrap_err();
        assert_eq!(breach.law, law, "{fault:?}: {breach:#?}");
    }
    let with_threads = [
        (Fault::ReadsIllegal, Law::WrittenIsLegal),
        (Fault::WritesNonsense, Law::WrittenReads),
        (Fault::NeverTheSame, Law::WritingIsStable),
        (Fault::LosesTexts, Law::NothingIsLostSilently),
    ];
    for (fault, law) in with_threads {
        let breach = check(&Codec::new(Dialect::OpenAiChat, Some(fault)), &[]).unwrap_err();
        assert_eq!(breach.law, law, "{fault:?}: {breach:#?}");
    }
    let refused = check(&Codec::new(Dialect::OpenAiChat, None), &["{"]).unwrap_err();
    assert_eq!(refused.law, Law::BodyComesBack);
}

#[test]
fn a_breach_shows_the_smallest_case() {
    let codec = Codec::new(Dialect::OpenAiChat, Some(Fault::LosesTexts));
    let breach = check(&codec, &[]).unwrap_err();
    let thread = notation::parse(&breach.input).unwrap();
    let blocks = thread.iter().flat_map(|message| &message.content);
    assert_eq!(blocks.filter(|block| block.as_text().is_some()).count(), 1);
}

/// A dialect, broken in one way if a test says so.
struct Codec {
    dialect: Dialect,
    fault: Option<Fault>,
    written: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    ForgetsFields,
    ForgetsBody,
    AdjustsAlways,
    ReadsIllegal,
    WritesNonsense,
    NeverTheSame,
    LosesTexts,
}

impl Codec {
    fn new(dialect: Dialect, fault: Option<Fault>) -> Self {
        Self { dialect, fault, written: Cell::new(0) }
    }

    fn decode(&self, body: &str) -> Result<Request, WireError> {
        let mut request = self.dialect.decode_slice(body.as_bytes(), &DecodeOptions::default())?;
        match self.fault {
            Some(Fault::ForgetsFields) => request.extra = Extra::default(),
            Some(Fault::ReadsIllegal) => {
                let stray = ToolResult::text("stray", "It has no call.");
                let stray = Message::new(Role::User, vec![stray.into()]);
                Arc::make_mut(&mut request.messages).push(stray);
            }
            _ => {}
        }
        Ok(request)
    }

    fn encode(&self, request: &Request, options: &EncodeOptions) -> Encoded {
        let mut request = request.clone();
        if self.fault == Some(Fault::LosesTexts) {
            let messages = Arc::make_mut(&mut request.messages);
            for message in &mut *messages {
                message.make_mut().content.retain(|block| block.as_text().is_none());
            }
            messages.retain(|message| !message.content.is_empty());
        }
        let mut encoded = self.dialect.encode(&request, options);
        let number = self.written.replace(self.written.get() + 1);
        let json = |text: &str| Json::parse(text).unwrap();
        match self.fault {
            Some(Fault::AdjustsAlways) => {
                encoded.adjustments.push(Adjustment::whole(Change::Merged));
            }
            Some(Fault::ForgetsBody) => encoded.body = json(r#"{"messages":[]}"#),
            Some(Fault::WritesNonsense) => encoded.body = json("5"),
            Some(Fault::NeverTheSame) => {
                encoded.body = json(&format!(r#"{{"messages":[],"number":{number}}}"#));
            }
            Some(Fault::ForgetsFields | Fault::ReadsIllegal | Fault::LosesTexts) | None => {}
        }
        encoded
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    /// Decoding and encoding a body must give the same body.
    BodyComesBack,
    /// An unchanged request must not be adjusted.
    UntouchedIsUnadjusted,
    /// Unknown fields must be written in their place.
    UnknownFieldsSurvive,
    /// An encoded body must be readable.
    WrittenReads,
    /// The thread in an encoded body must be legal.
    WrittenIsLegal,
    /// Decoding and encoding an encoded body must not change it.
    WritingIsStable,
    /// An adjustment must name every message that loses text.
    NothingIsLostSilently,
}

/// A law that a codec breaks, with an example.
#[derive(Debug)]
#[expect(dead_code, reason = "shown if a law is broken")]
struct Breach {
    law: Law,
    input: String,
    expected: String,
    found: String,
}

type Checked<T = ()> = Result<T, Breach>;

impl Law {
    fn breach(self, input: impl ToString, expected: impl ToString, found: impl ToString) -> Breach {
        let (input, expected, found) = (input.to_string(), expected.to_string(), found.to_string());
        Breach { law: self, input, expected, found }
    }
}

/// Checks a codec. Decoding and encoding each of `bodies` must return the same body without
/// adjustments, even if unknown fields are added everywhere. Generated threads, legal and junk, must
/// be encoded to bodies that decode to legal threads and encode to the same body again. Damaged
/// bodies must not cause a panic.
fn check(codec: &Codec, bodies: &[&str]) -> Checked {
    for body in bodies {
        is_unchanged(codec, body)?;
        unknown_fields_survive(codec, body)?;
        damaged(body).iter().try_for_each(|body| never_panics(codec, body))?;
    }
    for_all(&legal_thread(0..8), |thread| encodes(codec, thread))?;
    for_all(&junk_thread(0..8), |thread| encodes(codec, thread))
}

/// Checks 128 generated values and returns the breach of the smallest one that breaks a law.
fn for_all<S: Strategy>(strategy: &S, check: impl Fn(&S::Value) -> Checked) -> Checked {
    let config = Config { cases: 128, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, random).run(strategy, |value| {
        check(&value).map_err(|breach| TestCaseError::fail(format!("{:?}", breach.law)))
    });
    match outcome {
        Err(TestError::Fail(_, smallest)) => check(&smallest),
        Ok(()) | Err(TestError::Abort(_)) => Ok(()),
    }
}

fn is_unchanged(codec: &Codec, body: &str) -> Checked {
    let written = rewrite(codec, body)?;
    if !written.adjustments.is_empty() {
        let found = format!("{:?}", written.adjustments);
        return Err(Law::UntouchedIsUnadjusted.breach(body, "no adjustments", found));
    }
    if tree(written.body.as_str()) == tree(body) {
        Ok(())
    } else {
        Err(Law::BodyComesBack.breach(body, body, written.body))
    }
}

/// Decodes a body and encodes it for the model that it names.
fn rewrite(codec: &Codec, body: &str) -> Checked<Encoded> {
    let read = codec.decode(body);
    let request = read.map_err(|error| Law::BodyComesBack.breach(body, "a request", error))?;
    let body = tree(body);
    let named = body.get("model").and_then(Value::as_str).map(EncodeOptions::for_model);
    let options = EncodeOptions { model: None, ..named.unwrap_or_default() };
    Ok(codec.encode(&request, &options))
}

/// The unknown field. The order of its keys and the text of its number must survive too.
const UNKNOWN: (&str, &str) = ("x_nobody_knows", r#"{"z":1,"a":[2.50]}"#);

fn unknown_fields_survive(codec: &Codec, body: &str) -> Checked {
    let mut extended = tree(body);
    let count = add_unknown(&mut extended, 3);
    let Value::Object(_) = &extended else { return Ok(()) };
    // A parsed value keeps neither the order of keys nor the text of numbers, so insert a
    // placeholder string and replace it in the text.
    let placeholder = Value::String(UNKNOWN.1.to_owned()).to_string();
    let body = extended.to_string().replace(&placeholder, UNKNOWN.1);
    let written = rewrite(codec, &body)?;
    let found = written.body.as_str().matches(UNKNOWN.1).count();
    if found == count && tree(written.body.as_str()) == tree(&body) {
        Ok(())
    } else {
        Err(Law::UnknownFieldsSurvive.breach(&body, &body, written.body))
    }
}

/// Adds the unknown field to an object and to the objects in its lists, `depth` levels deep.
/// Returns the number of added fields.
fn add_unknown(value: &mut Value, depth: usize) -> usize {
    let Value::Object(object) = value else { return 0 };
    let lists = object.values_mut().filter_map(Value::as_array_mut);
    let deeper =
        if depth == 0 { 0 } else { lists.flatten().map(|v| add_unknown(v, depth - 1)).sum() };
    object.insert(UNKNOWN.0.to_owned(), Value::String(UNKNOWN.1.to_owned()));
    deeper + 1
}

/// Truncated bodies, and bodies with values of other types. Most of these are refused.
fn damaged(body: &str) -> Vec<String> {
    let cuts = (0..16).map(|part| body.len() * part / 16);
    let truncated = cuts.filter_map(|at| body.get(..at)).map(str::to_owned);
    let swaps = [("[", "{"), ("\"", ""), (":\"", ":[\""), ("true", "1"), ("{", "[")];
    let swapped = swaps.into_iter().map(|(from, to)| body.replacen(from, to, 3));
    let small = ["null", "5", "[]", "{}", "\"\"", r#"{"messages":null}"#, r#"{"messages":[null]}"#];
    let parsed = tree(body);
    let with_nulls = (0..8).map(|number| with_nulls(parsed.clone(), number).to_string());
    truncated.chain(swapped).chain(small.map(str::to_owned)).chain(with_nulls).collect()
}

/// Replaces every eighth value by null.
fn with_nulls(mut value: Value, number: usize) -> Value {
    fn visit(value: &mut Value, count: &mut usize, number: usize) {
        *count += 1;
        match value {
            _ if *count % 8 == number && *count > 1 => *value = Value::Null,
            Value::Array(items) => items.iter_mut().for_each(|item| visit(item, count, number)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| visit(field, count, number));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    visit(&mut value, &mut 0, number);
    value
}

/// Decodes any text. If it is a body, encoding it must be stable.
fn never_panics(codec: &Codec, body: &str) -> Checked {
    let _ = codec.dialect.decode_response(body.as_bytes());
    match codec.decode(body) {
        Ok(request) => is_stable(codec, &request, body).map(|_| ()),
        Err(_) => Ok(()),
    }
}

/// Whether a string of a body holds a text. Text that looks like one of this crate's tags is
/// written with a backslash.
fn holds(string: &str, text: &str) -> bool {
    string.contains(text) || string.replace("<\\", "<").contains(text)
}

fn encodes(codec: &Codec, thread: &[Message]) -> Checked {
    let input = notation::write(thread);
    let written = is_stable(codec, &Request::new(thread.to_vec()), &input)?;
    let body = tree(written.body.as_str());
    let mut found = Vec::new();
    strings(&body, &mut found);
    for (index, message) in thread.iter().enumerate() {
        if written.adjustments.iter().any(|change| change.message == Some(index)) {
            continue;
        }
        let mut texts = message.texts();
        if let Some(text) = texts.find(|text| !found.iter().any(|string| holds(string, text))) {
            return Err(Law::NothingIsLostSilently.breach(input, text, written.body));
        }
    }
    Ok(())
}

/// Encodes a request, decodes the body, and encodes it again.
fn is_stable(codec: &Codec, request: &Request, input: &str) -> Checked<Encoded> {
    let written = codec.encode(request, &EncodeOptions::default());
    let body = written.body.as_str();
    let read = codec.decode(body);
    let read = read.map_err(|error| {
        Law::WrittenReads.breach(input, "a request", format!("{error}: {body}"))
    })?;
    if let Some(violation) = legality::violations(&read.messages).first() {
        return Err(Law::WrittenIsLegal.breach(input, body, violation));
    }
    let again = codec.encode(&read, &EncodeOptions::default());
    if again.body == written.body {
        Ok(written)
    } else {
        Err(Law::WritingIsStable.breach(input, body, again.body))
    }
}

/// Collects all strings in a value. JSON within a string is not parsed.
fn strings<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn tree(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_default()
}
