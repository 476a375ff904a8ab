//! Writing request bodies: the blocks are made legal, written as items, and then the items are made
//! legal in their order.

use super::{calls::Calls, kinds, marks::*, normal::Responses, order, order::Item, params};
use crate::kit::*;

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let at_rest = !names_model(request, options, CODEC);
    let (request, messages, mut notes) =
        names::begin(request, CODEC, (&names::TOOLS, false), at_rest);
    let mut body = params::write(&request, options, &mut notes);
    let is_chained = params::cut_chain(&request, &mut body, &mut notes);
    let rules = Responses { target: Target::new((CODEC, "model"), &request, options) };
    let system = rules::system(&rules, &request.system, &mut notes);
    let mut thread = rules::thread(&rules, messages, &mut notes);
    let calls = Calls::of(&mut thread, &mut notes);
    let mut writer = Writer { items: Vec::new(), calls, at: 0, notes: &mut notes };
    let first = system.first().and_then(instructions);
    let is_first_apart = usize::from(first.is_some());
    body.set_some("instructions", first);
    system.iter().skip(is_first_apart).for_each(|message| writer.message(0, message));
    let of_system = writer.items.len();
    thread.iter().for_each(|(at, message)| writer.message(*at, message));
    let mut items = writer.items;
    order::arrange(&mut items, order::Ending { is_chained, at_rest }, &mut notes);
    let of_thread = items.len().saturating_sub(of_system);
    if !is_chained && notes::is_emptied(&request.messages, of_thread, &mut notes) {
        let object = Object::of("role", "user").with("content", CONTINUE);
        items.push(Item::new(request.messages.len(), object, None));
    }
    write_input(&request, items, &mut body);
    Encoded { body: body.into_json(), adjustments: notes.finish() }
}

/// The text of a system message that is written as `instructions`; `None` if it was read as an item
/// or holds more than text.
fn instructions(message: &Message) -> Option<Text> {
    let is_item = marked(&message.extra, mark::AS).is_some_and(|form| form == "item");
    let texts = message.content.iter().map(|block| block.as_text().map(Text::as_str));
    let texts: Option<Vec<&str>> = texts.collect();
    texts.filter(|_| !is_item).map(|texts| texts.join("\n\n").into())
}

/// Writes the items, as one string if they were read as one. A body that was read without input
/// gets none.
fn write_input(request: &Request, items: Vec<Item>, body: &mut Object) {
    if items.is_empty() && marked(&request.extra, mark::INPUT).is_some() {
        return;
    }
    let first = request.messages.first();
    let was_string = first.is_some_and(|first| marked(&first.extra, mark::INPUT).is_some());
    let text = match items.as_slice() {
        [Item { body: Tree::Object(only), .. }] if was_string && only.len() == 2 => {
            only.get("content").and_then(Tree::text)
        }
        [..] => None,
    };
    let input = match text {
        Some(text) => text.into(),
        None => Tree::Array(items.into_iter().map(|item| item.body).collect()),
    };
    body.set("input", input);
}

/// The items written so far.
#[derive(Debug)]
struct Writer<'n> {
    items: Vec<Item>,
    calls: Calls,
    /// The index of the current message in the request.
    at: usize,
    notes: &'n mut Notes,
}

impl Writer<'_> {
    /// Writes a message with this index in the request.
    fn message(&mut self, at: usize, message: &Message) {
        self.at = at;
        match message.role {
            Role::User | Role::System => self.said(message),
            Role::Assistant => self.answer(message),
        }
    }

    /// Writes a user or system message: one item for adjacent texts and media, and one for each
    /// result and each opaque item.
    fn said(&mut self, message: &Message) {
        let mut fields = Some(item_fields(&message.extra));
        let mut pieces = Vec::new();
        for block in &message.content {
            if let ContentBlock::ToolResult(result) = block {
                self.flush(message, &mut fields, &mut pieces);
                self.result(result);
            } else if let Some((json, led)) = whole(block) {
                self.flush(message, &mut fields, &mut pieces);
                self.items.push(Item::whole(self.at, json, led));
            } else {
                pieces.extend(piece(message.role, block));
            }
        }
        self.flush(message, &mut fields, &mut pieces);
        if fields.is_some() {
            // All blocks were written as separate items, and none of these can hold the fields.
            self.notes.turn_to(self.at).report_lost(&message.extra);
        }
    }

    /// Writes adjacent pieces as one item. The first one gets the fields of the message.
    fn flush(&mut self, message: &Message, fields: &mut Option<Object>, pieces: &mut Vec<Tree>) {
        let form = marked(&message.extra, mark::CONTENT);
        let content = openai::content(std::mem::take(pieces), form.as_deref(), "input_text");
        let Some(content) = content else { return };
        let role = match message.role {
            Role::System if marked(&message.extra, mark::ROLE).is_some() => "developer",
            role @ (Role::User | Role::System | Role::Assistant) => role.as_str(),
        };
        let object = fields.take().unwrap_or_default();
        let object = object.with("role", role).with("content", content);
        self.items.push(Item::new(self.at, object, None));
    }

    fn result(&mut self, result: &ToolResult) {
        let type_as_read = marked(&result.extra, mark::AS);
        let mut kind = self.calls.output(&result.tool_use_id);
        if !kinds::is_plain(kind) && type_as_read.as_deref() != Some(kind) {
            kind = kinds::FUNCTION_OUTPUT;
        }
        let pieces = result.content.iter().filter_map(|block| piece(Role::User, block)).collect();
        let form = marked(&result.extra, mark::CONTENT);
        let output = openai::content(pieces, form.as_deref(), "input_text");
        let named =
            marked(&result.extra, mark::NAMED).filter(|_| kind == kinds::LOCAL_SHELL_OUTPUT);
        let key = if named.is_some() { "id" } else { "call_id" };
        let mut object = item_fields(&result.extra).with("type", kind);
        object.set(key, result.tool_use_id.clone());
        // The result of a function always has an output, even if it was read in another form
        // without one.
        let form = form.filter(|form| form != "absent" || !kinds::is_plain(kind));
        object.set_some("output", output.or_else(|| no_content(form.as_deref())));
        let mut item = Item::new(self.at, object, None);
        if named.is_some() {
            // This id is that of the call, so it may occur twice.
            item.label.id = None;
        }
        self.items.push(item);
    }

    /// Writes a message of the model. Adjacent texts are parts of one item if they were read as
    /// such, or if they were not read in this dialect.
    fn answer(&mut self, message: &Message) {
        let mut open: Option<Open> = None;
        for block in &message.content {
            let Some((text, extra)) = wire_text(Role::Assistant, block) else {
                self.close(open.take());
                self.item(block);
                continue;
            };
            let begins = extra.get(CODEC, mark::ITEM).is_some();
            let joins = extra.get(CODEC, mark::JOINS).is_some();
            // A text that was not read in this dialect must not join an item of the provider.
            let fits = open.as_ref().is_some_and(|open| joins || open.form.is_none());
            if begins || !fits {
                self.close(open.take());
            }
            open.get_or_insert_with(|| Open::new(extra)).pieces.push(part(text, extra));
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<Open>) {
        let Some(Open { fields: mut object, form, led, pieces }) = open else { return };
        let Some(content) = openai::content(pieces, form, "output_text") else { return };
        if matches!(content, Tree::Array(_)) && form.is_none() {
            object.set("type", "message");
        }
        let object = object.with("role", "assistant").with("content", content);
        self.items.push(Item::new(self.at, object, led));
    }

    /// Writes a block of the model that is an item of its own.
    fn item(&mut self, block: &ContentBlock) {
        let item = if let ContentBlock::Thinking(thinking) = block {
            let mut object = item_fields(&thinking.extra).with("type", kinds::REASONING);
            object.set_some("encrypted_content", thinking.signature.clone());
            let next = marked(&thinking.extra, mark::NEXT);
            Item { next, ..Item::new(self.at, object, None) }
        } else if let ContentBlock::ToolUse(call) = block {
            let object = written_call(call, self.calls.output(&call.id));
            let mut item = Item::new(self.at, object, marked(&call.extra, mark::LED));
            item.label.call_id = Some(self.calls.id_before(&call.id));
            item
        } else if let Some((json, led)) = whole(block) {
            Item::whole(self.at, json, led)
        } else {
            return;
        };
        self.items.push(item);
    }
}

/// A message item of the model to which texts may be added.
#[derive(Debug)]
struct Open {
    fields: Object,
    /// The form in which its content was read; `None` if it comes from outside this dialect.
    form: Option<&'static str>,
    led: Option<Text>,
    pieces: Vec<Tree>,
}

impl Open {
    /// Begins an item with its first text, which has the fields of the item.
    fn new(extra: &Extra) -> Self {
        let fields = reopen(extra.get(CODEC, mark::ITEM)).and(reopen(extra.get(CODEC, "item")));
        let form = match (extra.get(CODEC, mark::CONTENT), extra.get(CODEC, mark::ITEM)) {
            (Some(_), _) => Some("string"),
            (None, Some(_)) => Some("array"),
            (None, None) => None,
        };
        Self { fields, form, led: marked(extra, mark::LED), pieces: Vec::new() }
    }
}

/// The item that a block holds whole, and the id of the reasoning that led to it.
fn whole(block: &ContentBlock) -> Option<(Json, Option<Text>)> {
    match block {
        ContentBlock::ServerToolUse(call) => {
            Some((call.input.clone(), marked(&call.extra, mark::LED)))
        }
        ContentBlock::ServerToolResult(result) => {
            Some((result.content.clone(), marked(&result.extra, mark::LED)))
        }
        ContentBlock::Opaque(opaque) => kept_item(&opaque.value),
        // Texts and media are written as parts of an item, calls, results and reasoning field by
        // field.
        blocks!(text) | blocks!(media) | blocks!(reasoning) => None,
        ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_) => None,
    }
}

/// Writes a call whose answer is of this type.
fn written_call(call: &ToolUse, output: &str) -> Object {
    let id = call.id.clone();
    let (kind, key) = match (output, &call.input) {
        (kinds::CUSTOM_OUTPUT, _) => (kinds::CUSTOM, "input"),
        (kinds::FUNCTION_OUTPUT, _) | (_, ToolInput::Text(_)) => (kinds::FUNCTION, "arguments"),
        (_, ToolInput::Json(json)) => return reopen(Some(json)).with("call_id", id),
    };
    let object = item_fields(&call.extra).with("type", kind).with("call_id", id);
    object.with("name", call.name.clone()).with(key, Text::from(call.input.as_str()))
}

/// Writes a text of an answer: a part, unless it has no other fields.
fn part(text: Text, extra: &Extra) -> Tree {
    let mut fields = own_object(CODEC, extra);
    fields.remove("item");
    if extra.get(CODEC, mark::ANNOTATIONS).is_some() {
        fields.set("annotations", Vec::new());
    }
    let (kind, key) = match marked(extra, mark::AS).as_deref() {
        Some("refusal") => ("refusal", "refusal"),
        Some("input_text") => ("input_text", "text"),
        Some(_) | None if fields.len() == 0 => return text.into(),
        Some(_) | None => ("output_text", "text"),
    };
    fields.with("type", kind).with(key, text).into()
}

/// Returns a block as a piece of a user or system message, or of a tool result.
fn piece(role: Role, block: &ContentBlock) -> Option<Tree> {
    if let Some((text, extra)) = wire_text(role, block) {
        return Some(openai::text_piece(CODEC, "input_text", text, extra));
    }
    if let ContentBlock::Image(Image { source, extra }) = block {
        let mut object = own_object(CODEC, extra);
        if object.get("detail").is_none() && marked(extra, mark::DETAIL).is_none() {
            object.set("detail", "auto");
        }
        object.set("type", "input_image");
        openai::set_source(&mut object, source, "image_url");
        return Some(object.into());
    }
    if let ContentBlock::Document(document) = block {
        let mut object = own_object(CODEC, &document.extra).with("type", "input_file");
        openai::set_file(&mut object, document);
        return Some(object.into());
    }
    let ContentBlock::Opaque(opaque) = block else { return None };
    kept_part(&opaque.value).map(openai::whole)
}
