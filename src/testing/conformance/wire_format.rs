//! What a codec must keep.

use serde_json::Value;

use super::law::{Breach, Law, for_all};
use crate::{
    compact::legality,
    message::{ContentBlock, Message, Request},
    testing::{
        generate::{junk_thread, legal_thread},
        notation,
    },
    wire::{DecodeOptions, EncodeOptions, Encoded, ModelTraits, WireFormat},
};

/// Asks a codec what each must keep. The bodies are requests of its dialect in the codec's normal
/// form: each must come back as it is, without an adjustment, and with fields that nobody knows
/// put in everywhere. Then generated threads, legal and junk, must be written to bodies that read
/// as legal threads and are written the same way again.
///
/// ```no_run
/// use threadfold::{WireFormat, testing::conformance};
///
/// fn my_codec_conforms(codec: &dyn WireFormat) -> Result<(), conformance::Breach> {
///     conformance::wire_format(codec, &[r#"{"messages":[{"role":"user","content":"hi"}]}"#])
/// }
/// ```
///
/// # Errors
///
/// The first [`Breach`].
pub fn wire_format(codec: &dyn WireFormat, bodies: &[&str]) -> Result<(), Breach> {
    for body in bodies {
        comes_back(codec, body)?;
        unknown_fields_survive(codec, body)?;
        spoilt(body).iter().try_for_each(|body| never_panics(codec, body))?;
    }
    for_all(&legal_thread(0..8), 128, |thread| writes(codec, thread))?;
    for_all(&junk_thread(0..8), 128, |thread| writes(codec, thread))
}

fn comes_back(codec: &dyn WireFormat, body: &str) -> Result<(), Breach> {
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

/// Reads a body and writes it for the model that it names.
fn rewrite(codec: &dyn WireFormat, body: &str) -> Result<Encoded, Breach> {
    let read = codec.decode_slice(body.as_bytes(), &DecodeOptions::default());
    let request = read.map_err(|error| Law::BodyComesBack.breach(body, "a request", error))?;
    let name = tree(body).get("model").and_then(Value::as_str).map(ModelTraits::for_model);
    let options = EncodeOptions { traits: name.unwrap_or_default(), ..EncodeOptions::default() };
    Ok(codec.encode(&request, &options))
}

/// What is put in everywhere. The order of its keys and the text of its number must survive too.
const UNKNOWN: (&str, &str) = ("x_nobody_knows", r#"{"z":1,"a":[2.50]}"#);

fn unknown_fields_survive(codec: &dyn WireFormat, body: &str) -> Result<(), Breach> {
    let mut dressed = tree(body);
    let count = dress(&mut dressed, 3);
    let Value::Object(_) = &dressed else { return Ok(()) };
    // A tree keeps neither order nor number texts, so the field goes in as text.
    let placeholder = Value::String(UNKNOWN.1.to_owned()).to_string();
    let body = dressed.to_string().replace(&placeholder, UNKNOWN.1);
    let written = rewrite(codec, &body)?;
    let found = written.body.as_str().matches(UNKNOWN.1).count();
    if found == count && tree(written.body.as_str()) == tree(&body) {
        Ok(())
    } else {
        Err(Law::UnknownFieldsSurvive.breach(&body, &body, written.body))
    }
}

/// Puts the unknown field into an object and into those in its lists; returns how often.
fn dress(value: &mut Value, depth: usize) -> usize {
    let Value::Object(object) = value else { return 0 };
    let lists = object.values_mut().filter_map(Value::as_array_mut);
    let deeper = if depth == 0 { 0 } else { lists.flatten().map(|v| dress(v, depth - 1)).sum() };
    object.insert(UNKNOWN.0.to_owned(), Value::String(UNKNOWN.1.to_owned()));
    deeper + 1
}

/// The body broken off, and with parts of another kind: most of these are refused.
fn spoilt(body: &str) -> Vec<String> {
    let cuts = (0..16).map(|part| body.len() * part / 16);
    let cut = cuts.filter_map(|at| body.get(..at)).map(str::to_owned);
    let kinds = [("[", "{"), ("\"", ""), (":\"", ":[\""), ("true", "1"), ("{", "[")];
    let swapped = kinds.into_iter().map(|(from, to)| body.replacen(from, to, 3));
    let nulls = ["null", "5", "[]", "{}", "\"\"", r#"{"messages":null}"#, r#"{"messages":[null]}"#];
    let emptied = tree(body);
    let holes = (0..8).map(|number| hollow(emptied.clone(), number).to_string());
    cut.chain(swapped).chain(nulls.map(str::to_owned)).chain(holes).collect()
}

/// Replaces some values by null.
fn hollow(mut value: Value, number: usize) -> Value {
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

/// Reads any text as a body. If it is one, it can be written, and that is stable.
fn never_panics(codec: &dyn WireFormat, body: &str) -> Result<(), Breach> {
    let _ = codec.decode_response(body.as_bytes());
    match codec.decode_slice(body.as_bytes(), &DecodeOptions::default()) {
        Ok(request) => is_stable(codec, &request, body).map(|_| ()),
        Err(_) => Ok(()),
    }
}

fn writes(codec: &dyn WireFormat, thread: &[Message]) -> Result<(), Breach> {
    let input = notation::write(thread);
    let written = is_stable(codec, &Request::new(thread.to_vec()), &input)?;
    let body = tree(written.body.as_str());
    let mut found = Vec::new();
    strings(&body, &mut found);
    for (index, message) in thread.iter().enumerate() {
        let named = written.adjustments.iter().any(|change| change.message == Some(index));
        let texts = message.content.iter().filter_map(ContentBlock::as_text);
        // A text that reads as a tag of ours goes out with a backslash, and comes back without.
        let says = |string: &str, text: &str| {
            string.contains(text) || string.replace("<\\", "<").contains(text)
        };
        let lost = texts.filter(|text| !found.iter().any(|string| says(string, text)));
        if let Some(text) = lost.into_iter().next().filter(|_| !named) {
            return Err(Law::NothingIsLostSilently.breach(input, text, written.body));
        }
    }
    Ok(())
}

/// Writes a request, reads it, and writes it again.
fn is_stable(codec: &dyn WireFormat, request: &Request, input: &str) -> Result<Encoded, Breach> {
    let written = codec.encode(request, &EncodeOptions::default());
    let body = written.body.as_str();
    let read = codec.decode_slice(body.as_bytes(), &DecodeOptions::default());
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

/// All strings in a tree. Inputs that stand as JSON within a string are not opened.
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
