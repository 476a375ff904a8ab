//! The conformance suite for codecs.

use serde_json::Value;
use threadfold::{
    compact::legality,
    message::{Message, Request},
    wire::{DecodeOptions, EncodeOptions, Encoded, WireFormat},
};

use super::law::{Law, Result, for_all};
use crate::{
    generate::{junk_thread, legal_thread},
    notation,
};

/// Tests a codec. `bodies` are requests of its dialect in the codec's normal form: decoding and
/// encoding each one must return the same body without adjustments, even if unknown fields are
/// added everywhere. Generated threads, legal and junk, must be encoded to bodies that decode to
/// legal threads and encode to the same body again. Damaged bodies must not cause a panic.
///
/// ```no_run
/// use threadfold::WireFormat;
/// use threadfold_testing::conformance;
///
/// fn my_codec_conforms(codec: &dyn WireFormat) -> Result<(), conformance::Breach> {
///     conformance::wire_format(codec, &[r#"{"messages":[{"role":"user","content":"hi"}]}"#])
/// }
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub fn wire_format(codec: &dyn WireFormat, bodies: &[&str]) -> Result<()> {
    for body in bodies {
        is_unchanged(codec, body)?;
        unknown_fields_survive(codec, body)?;
        damaged(body).iter().try_for_each(|body| never_panics(codec, body))?;
    }
    for_all(&legal_thread(0..8), 128, |thread| encodes(codec, thread))?;
    for_all(&junk_thread(0..8), 128, |thread| encodes(codec, thread))
}

fn is_unchanged(codec: &dyn WireFormat, body: &str) -> Result<()> {
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
fn rewrite(codec: &dyn WireFormat, body: &str) -> Result<Encoded> {
    let read = codec.decode_slice(body.as_bytes(), &DecodeOptions::default());
    let request = read.map_err(|error| Law::BodyComesBack.breach(body, "a request", error))?;
    let body = tree(body);
    let named = body.get("model").and_then(Value::as_str).map(EncodeOptions::for_model);
    let options = EncodeOptions { model: None, ..named.unwrap_or_default() };
    Ok(codec.encode(&request, &options))
}

/// The unknown field. The order of its keys and the text of its number must survive too.
const UNKNOWN: (&str, &str) = ("x_nobody_knows", r#"{"z":1,"a":[2.50]}"#);

fn unknown_fields_survive(codec: &dyn WireFormat, body: &str) -> Result<()> {
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
fn never_panics(codec: &dyn WireFormat, body: &str) -> Result<()> {
    let _ = codec.decode_response(body.as_bytes());
    match codec.decode_slice(body.as_bytes(), &DecodeOptions::default()) {
        Ok(request) => is_stable(codec, &request, body).map(|_| ()),
        Err(_) => Ok(()),
    }
}

/// Whether a string of a body holds a text. Text that looks like one of this crate's tags is
/// written with a backslash.
fn holds(string: &str, text: &str) -> bool {
    string.contains(text) || string.replace("<\\", "<").contains(text)
}

fn encodes(codec: &dyn WireFormat, thread: &[Message]) -> Result<()> {
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
fn is_stable(codec: &dyn WireFormat, request: &Request, input: &str) -> Result<Encoded> {
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
