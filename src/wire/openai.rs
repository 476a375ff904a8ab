//! What both dialects of OpenAI have: data URIs, inputs that are texts, failures that are texts,
//! and parameters.

use serde_json::{Number, value::RawValue};

use super::{
    contract::{Change, EncodeOptions},
    extras::Field,
    fields::Fields,
    notes::Notes,
    tree::{Object, Tree},
};
use crate::message::{Document, Json, MediaSource, Request, Text, ToolInput, ToolUse};

/// Whether the body names a model to go on with the thread; without one it is a thread at rest.
pub(super) fn names_model(request: &Request, options: &EncodeOptions, codec: &str) -> bool {
    let own = request.extra.get(codec, "model");
    options.model.is_some() || own.is_some_and(|own| *own != Json::default())
}

/// Reads a data URI, if it is of the one form that [`write_data_uri`] gives back.
pub(super) fn data_uri(uri: &str) -> Option<MediaSource> {
    let (media_type, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
    let plain = !media_type.is_empty() && !media_type.contains([';', ',']);
    plain.then(|| MediaSource::Base64 { media_type: media_type.into(), data: data.into() })
}

/// Returns the data URI of these bytes.
pub(super) fn write_data_uri(media_type: &str, data: &str) -> Text {
    format!("data:{media_type};base64,{data}").into()
}

/// Writes a document as text: its title, what the model is told about it, and its text or address.
pub(super) fn document_text(document: &Document, text: &str, notes: &mut Notes) -> Text {
    notes.note(Change::BlockAsText { kind: "document".into() });
    let lines = document.title.iter().chain(&document.context).map(Text::as_str).chain([text]);
    let written = Text::from(lines.collect::<Vec<_>>().join("\n"));
    // The fields of a file mean nothing on text.
    let _ = notes.own_fields(&document.extra).count();
    written
}

/// The input as text. What came as text stays, whatever it is; what came as JSON must be an object.
pub(super) fn input_text(call: &ToolUse, notes: &mut Notes) -> Tree {
    match &call.input {
        ToolInput::Text(text) => text.clone().into(),
        ToolInput::Json(json) if json.is_object() => Text::from(json.as_str()).into(),
        ToolInput::Json(json) => {
            notes.note(Change::InputWrapped { id: call.id.clone() });
            let wrapped = Tree::from(Object::default().with("input", json.clone())).into_json();
            Text::from(wrapped.as_str()).into()
        }
    }
}

/// How the result of a call that failed begins: nothing else says so in these dialects.
pub(super) const FAILED: &str = "Error:";

/// Says in a text that the tool failed, unless it begins so itself.
pub(super) fn failed(text: &Text) -> Text {
    let says = text.get(..FAILED.len()).is_some_and(|start| start.eq_ignore_ascii_case(FAILED));
    if says { text.clone() } else { format!("{FAILED} {text}").into() }
}

/// Takes a field out that was understood, and keeps its text where it is written differently.
pub(super) fn take(
    fields: &mut Fields<'_>,
    key: &str,
    mark: &'static str,
    written: Option<Tree>,
    own: &mut Vec<Field>,
) {
    let Some(written) = written else { return };
    let came = fields.take_json(key).filter(|came| *came != written.into_json());
    own.extend(came.map(|came| (mark, came)));
}

/// Sets the temperature. `came` is the text that it had on the wire, which is written as long as
/// it means the same.
pub(super) fn write_temperature(
    request: &Request,
    came: Option<&Json>,
    body: &mut Object,
    notes: &mut Notes,
) {
    let Some(value) = request.temperature else { return };
    let came = came.filter(|came| temperature(Some(came.as_raw())) == Some(value));
    match came.cloned().map(Tree::from).or_else(|| number(value)) {
        Some(written) => body.set("temperature", written),
        None => notes.note(Change::ParameterDropped { name: "temperature".into() }),
    }
}

/// Reads a temperature.
pub(super) fn temperature(raw: Option<&RawValue>) -> Option<f64> {
    serde_json::from_str(raw?.get()).ok()
}

/// Reads a limit in tokens.
pub(super) fn limit(raw: Option<&RawValue>) -> Option<u64> {
    serde_json::from_str(raw?.get()).ok()
}

/// Returns a number as it is written; `None` for one that JSON has not.
pub(super) fn number(value: f64) -> Option<Tree> {
    Number::from_f64(value).map(Tree::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_uri_is_taken_apart_only_where_it_can_be_put_together_again() {
        for uri in ["data:image/png;base64,AA==", "data:a/b;base64,", "data:a/b;base64,x;base64,y"]
        {
            let Some(MediaSource::Base64 { media_type, data }) = data_uri(uri) else {
                panic!("{uri}")
            };
            assert_eq!(write_data_uri(&media_type, &data), uri);
        }
        for uri in
            ["https://x", "data:,x", "data:;base64,A", "data:a/b;c=d;base64,A", "DATA:a;base64,"]
        {
            assert_eq!(data_uri(uri), None, "{uri}");
        }
    }
}
