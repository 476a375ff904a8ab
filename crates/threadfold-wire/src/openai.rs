//! The parts that the two OpenAI dialects share: data URIs, inputs and failures as text, and
//! parameters.

use super::{
    extras::*, json::*, mark, notes::*, options::EncodeOptions, params::*, pictures::FittedSource,
    schemas::no_parameters,
};
use threadfold_core::message::*;

/// Reads a data URI if it has exactly the form in which this crate writes one.
pub(super) fn data_uri(uri: &str) -> Option<MediaSource> {
    let (media_type, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
    let plain = !media_type.is_empty() && !media_type.contains([';', ',']);
    plain.then(|| MediaSource::Base64 { media_type: media_type.into(), data: data.into() })
}

/// Returns a text of a result with these fields, and marks it if it is blank.
fn result_text(codec: &'static str, text: Text, mut rest: Fields<'_>) -> ContentBlock {
    if text.is_blank() {
        rest.add_word(mark::BLANK, "came");
    }
    TextBlock { text, extra: rest.keep(codec) }.into()
}

/// Checks the source of an image or a document. `is_own` is whether this provider stores its file.
pub(super) fn fit_source(source: &MediaSource, is_own: bool) -> FittedSource {
    match source {
        MediaSource::Base64 { .. } | MediaSource::Url { .. } => Ok(None),
        MediaSource::File { .. } if is_own => Ok(None),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => {
            Err("its source has no form in this dialect")
        }
    }
}

/// Wraps a JSON input that is no object. An input that was read as text stays as it is.
pub(super) fn fit_call(call: &mut ToolUse, notes: &mut Notes) {
    if let ToolInput::Json(_) = call.input {
        make_object(call, notes);
    }
}

/// The author of a content, which decides how its parts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    System,
    User,
    Assistant,
    Tool,
}

/// The blocks of a content, and the mark of its form if that is not the usual one.
pub(super) type Content = (Vec<ContentBlock>, Option<&'static str>);

/// Reads the contents of one dialect: strings, and arrays of parts.
pub(super) struct Contents {
    pub(super) codec: &'static str,
    /// The type of a part that holds text.
    pub(super) text: &'static str,
    /// Reads a part of another type; `None` if the type is unknown.
    pub(super) part: fn(&str, Fields<'_>, By) -> Option<ContentBlock>,
    /// Returns an opaque block for a whole content.
    pub(super) opaque_string: fn(Raw<'_>) -> ContentBlock,
    /// Returns an opaque block for a part.
    pub(super) opaque_part: fn(Raw<'_>) -> ContentBlock,
}

impl Contents {
    /// Reads a content that is one string. Blank text becomes opaque: it is valid in these
    /// dialects, but other providers refuse it and repairs would remove it.
    pub(super) fn string(&self, raw: Raw<'_>, by: By) -> Content {
        let block = match (by, raw.text()) {
            (By::Assistant, Some(text)) if text.is_empty() => return (Vec::new(), Some("empty")),
            (By::Tool, Some(text)) if text.is_empty() => return (Vec::new(), None),
            (By::Tool, Some(text)) => result_text(self.codec, text, Fields::default()),
            (_, Some(text)) if !text.is_blank() => ContentBlock::text(text),
            (_, _) => (self.opaque_string)(raw),
        };
        (vec![block], None)
    }

    /// Reads a content of these parts.
    pub(super) fn array(&self, parts: Vec<Raw<'_>>, by: By) -> Content {
        let form = match parts.len() {
            0 => Some("empty_array"),
            1 => Some("array"),
            _ => None,
        };
        let blocks = parts.into_iter().map(|raw| {
            let known = Fields::of(raw).and_then(|fields| self.known_part(fields, by));
            known.unwrap_or_else(|| (self.opaque_part)(raw))
        });
        (blocks.collect(), form)
    }

    fn known_part(&self, mut fields: Fields<'_>, by: By) -> Option<ContentBlock> {
        let kind = fields.take_word("type")?;
        if kind != self.text {
            return (self.part)(&kind, fields, by);
        }
        let text = fields.take_text("text")?;
        if by == By::Tool {
            return Some(result_text(self.codec, text, fields));
        }
        (!text.is_blank()).then(|| TextBlock { text, extra: fields.keep(self.codec) }.into())
    }
}

/// Removes and returns the source of a file and its name. The source is data, the id of a stored
/// file, or, if the dialect has this key, an address.
pub(super) fn take_file(
    file: &mut Fields<'_>,
    address: Option<&str>,
) -> Option<(MediaSource, Option<Text>)> {
    let source = if let Some(data) = file.take_text("file_data") {
        data_uri(&data)?
    } else if let Some(url) = address.and_then(|key| file.take_text(key)) {
        MediaSource::Url { url }
    } else {
        MediaSource::File { id: file.take_text("file_id")? }
    };
    Some((source, file.take_text("filename")))
}

/// Sets the source of a file and its name.
pub(super) fn set_file(file: &mut Object, document: &Document) {
    let is_address = matches!(document.source, MediaSource::Url { .. });
    set_source(file, &document.source, if is_address { "file_url" } else { "file_data" });
    file.set_some("filename", document.title.clone());
}

/// Sets the id of a stored file, or the data or address under this key.
pub(super) fn set_source(object: &mut Object, source: &MediaSource, key: &'static str) {
    if let MediaSource::File { id } = source {
        object.set("file_id", id.clone());
    }
    object.set_some(key, address(source));
}

/// Writes the failure of a tool into the text of its result: these dialects have no field for it.
pub(super) fn write_failure(codec: &str, result: &mut ToolResult) {
    const FAILED: &str = "Error:";
    if !result.is_error {
        return;
    }
    match result.content.first_mut() {
        Some(ContentBlock::Text(TextBlock { text, extra }))
            if own_object(codec, extra).len() == 0 =>
        {
            let start = text.get(..FAILED.len());
            if !start.is_some_and(|start| start.eq_ignore_ascii_case(FAILED)) {
                *text = format!("{FAILED} {text}").into();
            }
        }
        _ => result.content.insert(0, ContentBlock::text(FAILED)),
    }
}

/// Reads and writes the tools of one dialect.
pub(super) struct Tools {
    pub(super) codec: &'static str,
    /// Reads a function; `None` for any other tool.
    pub(super) read: fn(Fields<'_>) -> Option<ToolSpec>,
    /// Whether a tool without a schema is the provider's own, and written back unchanged.
    pub(super) is_native: fn(&ToolSpec) -> bool,
    /// Adds a function to an object of its unknown fields.
    pub(super) write: fn(&ToolSpec, &mut Object),
    pub(super) choice: Param<ToolChoice>,
}

impl Tools {
    /// Reads `tools`; `None` if it is not an array of objects, or empty.
    pub(super) fn read_all(&self, raw: Raw<'_>) -> Option<Vec<ToolSpec>> {
        raw.all(|raw| {
            let function = Fields::of(raw).and_then(self.read);
            function.or_else(|| Some(self.native(Fields::of(raw)?)))
        })
    }

    /// Reads a tool that is no function. All its fields go to `extra`, and its schema is `null`.
    /// Its name and description are copied from the tool, or from its object under the name of its
    /// type.
    fn native(&self, fields: Fields<'_>) -> ToolSpec {
        let kind = fields.text_or_empty("type");
        let body = fields.object(&kind).unwrap_or_else(|| fields.clone());
        let name = body.text("name").or_else(|| fields.text("name"));
        let name = name.or_else(|| fields.text("server_label")).unwrap_or(kind);
        let description = body.text("description").or_else(|| fields.text("description"));
        let tool = ToolSpec::new(name, description.unwrap_or_default(), Json::default());
        ToolSpec { extra: fields.keep(self.codec), ..tool }
    }

    /// Returns a tool as it is declared; `None` for another provider's own tool, which is reported.
    pub(super) fn declaration(&self, tool: &ToolSpec, notes: &mut Notes) -> Option<Object> {
        if !tool.input_schema.is_object() {
            let foreign = tool.extra.codec().filter(|codec| *codec != self.codec);
            if let Some(codec) = foreign {
                notes.drop_block("tool", &format!("{} is a tool of {codec} only", tool.name));
                return None;
            }
            if (self.is_native)(tool) {
                return Some(wire_fields(&tool.extra, notes));
            }
        }
        let mut object = wire_fields(&tool.extra, notes);
        (self.write)(tool, &mut object);
        Some(object)
    }

    /// Returns the request of these messages, with the parameters of the body.
    pub(super) fn read_request(
        &self,
        mut fields: Fields<'_>,
        system: Vec<Message>,
        messages: Vec<Message>,
    ) -> Request {
        let tools = fields.take_as("tools", |raw| self.read_all(raw));
        Request {
            system: system.into(),
            tools: tools.unwrap_or_default().into(),
            temperature: TEMPERATURE.take(&mut fields),
            tool_choice: self.choice.take(&mut fields),
            extra: fields.keep(self.codec),
            ..Request::new(messages)
        }
    }

    /// Returns the body without its messages. `limit` writes the limit on the answer.
    pub(super) fn write_request(
        &self,
        request: &Request,
        options: &EncodeOptions,
        limit: Option<Param<u64>>,
        notes: &mut Notes,
    ) -> Object {
        notes.turn_to(None);
        let mut body = wire_fields(&request.extra, notes);
        body.set_some("model", options.model.clone());
        if let Some(limit) = limit {
            limit.set(&mut body, &request.extra, request.max_output.as_ref(), notes);
        }
        TEMPERATURE.set(&mut body, &request.extra, request.temperature.as_ref(), notes);
        if options.refuses_sampling {
            for name in ["temperature", "top_p"] {
                if body.get(name).is_some_and(|value| !is_one(value)) {
                    body.remove(name);
                    notes.drop_parameter(name);
                }
            }
        }
        let (mut names, mut written) = (Vec::new(), Vec::new());
        for tool in request.tools.iter() {
            if let Some(object) = self.declaration(tool, notes) {
                names.push(&tool.name);
                written.push(object);
            }
        }
        let are_all = names.len() == request.tools.len();
        if !written.is_empty() {
            body.set("tools", Tree::from_iter(written));
        }
        match request.tool_choice.as_ref() {
            Some(choice) if !are_all && !is_met(choice, names.into_iter()) => {
                notes.drop_parameter("tool_choice");
            }
            choice => self.choice.set(&mut body, &request.extra, choice, notes),
        }
        body
    }
}

/// Removes name, description and parameter schema from a function and reads them. A description or
/// schema of another shape stays unknown; a missing schema is marked.
pub(super) fn read_function(function: &mut Fields<'_>) -> Option<ToolSpec> {
    if function.get("parameters").is_none() {
        function.add_word(mark::PARAMETERS, "absent");
    }
    let name = function.take_text("name")?;
    let description =
        function.take_as("description", |raw| raw.text().filter(|text| !text.is_empty()));
    let schema = function.take_object("parameters").map_or_else(no_parameters, Raw::json);
    Some(ToolSpec::new(name, description.unwrap_or_default(), schema))
}

/// Sets the name, description and parameters of a function. Parameters that were absent, or not a
/// schema, are written back unchanged until the host gives the tool a schema.
pub(super) fn set_function(tool: &ToolSpec, codec: &str, function: &mut Object) {
    function.set("name", tool.name.clone());
    function.set_unless_empty("description", &tool.description);
    let schema = Some(&tool.input_schema).filter(|schema| schema.is_object());
    let schema = schema.cloned().unwrap_or_else(no_parameters);
    let is_absent = tool.extra.get(codec, mark::PARAMETERS).is_some();
    let is_as_read = is_absent || function.get("parameters").is_some();
    if !is_as_read || schema != no_parameters() {
        function.set("parameters", schema);
    }
}

/// Reads a tool choice: a word, or an object of a type that names a tool, within the object of that
/// type or beside it.
pub(super) fn read_choice(raw: Raw<'_>) -> Option<ToolChoice> {
    if let Some(word) = raw.text() {
        return match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "required" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => None,
        };
    }
    let fields = Fields::of(raw)?;
    let kind = fields.word("type").filter(|kind| kind == "function" || kind == "custom")?;
    fields.object(&kind).unwrap_or(fields).text("name").map(ToolChoice::Tool)
}

/// Whether a parameter is the number 1, or `null`.
fn is_one(value: &Tree) -> bool {
    let number = match value {
        Tree::Number(number) => number.as_f64(),
        Tree::Raw(json) if *json == Json::default() => return true,
        Tree::Raw(json) => Raw::of(json).number(),
        Tree::Null => return true,
        Tree::Bool(_) | Tree::Text(_) | Tree::Word(_) | Tree::Array(_) | Tree::Object(_) => None,
    };
    number == Some(1.0)
}

/// Writes a tool choice; `named` writes the choice of one tool.
pub(super) fn write_choice(choice: &ToolChoice, named: fn(Text) -> Object) -> Option<Tree> {
    Some(match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Tool(name) => named(name.clone()).into(),
    })
}

/// Writes a text of a content. With unknown fields it is a part of this type.
pub(super) fn text_piece(codec: &str, kind: &'static str, text: Text, extra: &Extra) -> Tree {
    let fields = own_object(codec, extra);
    if fields.len() == 0 {
        text.into()
    } else {
        fields.with("type", kind).with("text", text).into()
    }
}

/// Writes a whole content as it was read: a string, or the output of a call in a special form.
pub(super) fn whole(json: Json) -> Tree {
    let text = Raw::of(&json).text();
    text.map_or(Tree::Raw(json), Tree::Text)
}

/// Returns a content of these texts and parts, with texts as parts of this type; `None` if there
/// are none. `form` is the form in which the content was read; without it, a single text becomes a
/// string.
pub(super) fn content(pieces: Vec<Tree>, form: Option<&str>, kind: &'static str) -> Option<Tree> {
    let first = pieces.first()?;
    let is_part =
        matches!(first, Tree::Object(_)) || matches!(first, Tree::Raw(json) if json.is_object());
    if pieces.len() == 1 && form != Some("array") && (!is_part || form == Some("whole")) {
        return Some(first.clone());
    }
    let parts = pieces.into_iter().map(|piece| {
        if let Tree::Text(text) = piece {
            Object::typed(kind).with("text", text).into()
        } else {
            piece
        }
    });
    Some(Tree::Array(parts.collect()))
}

/// The content of an empty result, in the form in which it was read.
pub(super) fn no_content(form: Option<&str>) -> Option<Tree> {
    match form {
        Some("absent") => None,
        Some("null") => Some(Tree::Null),
        Some("empty_array") => Some(Tree::Array(Vec::new())),
        Some(_) | None => Some(Tree::Word("")),
    }
}

/// The address of an image or a document: a data URI, or a URL.
pub(super) fn address(source: &MediaSource) -> Option<Text> {
    match source {
        MediaSource::Base64 { media_type, data } => {
            Some(format!("data:{media_type};base64,{data}").into())
        }
        MediaSource::Url { url } => Some(url.clone()),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_uri_is_taken_apart_only_where_it_can_be_put_together_again() {
        for uri in ["data:image/png;base64,AA==", "data:a/b;base64,", "data:a/b;base64,x;base64,y"]
        {
            let written = data_uri(uri).as_ref().and_then(address);
            assert_eq!(written.as_deref(), Some(uri));
        }
        for uri in
            ["https://x", "data:,x", "data:;base64,A", "data:a/b;c=d;base64,A", "DATA:a;base64,"]
        {
            assert_eq!(data_uri(uri), None, "{uri}");
        }
    }
}
