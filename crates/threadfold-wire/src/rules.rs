//! Which blocks a provider accepts, and in which form.
//!
//! A dialect implements [`Rules`] for its differences. [`thread`] and [`system`] apply them before
//! anything is written, so a writer only gets blocks that have a form in its dialect.

use std::collections::HashSet;

use super::{
    contract::Change, extras::text_mark, mark, normal::*, notes::*, options::EncodeOptions,
    pictures, pictures::*, texts, texts::blocks,
};
use threadfold_core::message::*;

/// Whether a source belongs to an image or a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Image,
    Document,
}

/// The sources that a provider accepts, for providers that distinguish media types.
pub(super) struct Sources {
    pub(super) codec: &'static str,
    /// Whether the provider stores files.
    pub(super) has_files: bool,
    /// The provider's name of a media type; `None` if the provider does not accept the type.
    pub(super) media_type: fn(Medium, &str) -> Option<&'static str>,
    /// Whether a document may be a text of this media type. Other texts become plain text.
    pub(super) takes_text: fn(&str) -> bool,
    /// Whether the provider fetches an address.
    pub(super) is_fetched: fn(Medium, &str) -> bool,
}

/// The media type of plain text.
pub(super) const PLAIN: &str = "text/plain";

impl Sources {
    /// Returns a source to write instead, as [`Rules::source`] does.
    pub(super) fn fit(
        &self,
        source: &MediaSource,
        medium: Medium,
        reader: Option<&str>,
    ) -> FittedSource {
        let is_read_here = reader.is_none_or(|reader| reader == self.codec);
        let (stated, data) = match source {
            MediaSource::File { .. } if self.has_files && is_read_here => return Ok(None),
            MediaSource::File { .. } => return Err("its file is in another provider's store"),
            MediaSource::Opaque { codec, .. } if *codec == self.codec => return Ok(None),
            MediaSource::Opaque { .. } => {
                return Err("only another provider understands its source");
            }
            MediaSource::Text { .. } if medium == Medium::Image => {
                return Err("a text is no picture");
            }
            MediaSource::Text { media_type, .. } if (self.takes_text)(media_type) => {
                return Ok(None);
            }
            MediaSource::Text { text, .. } => {
                let (media_type, text) = (PLAIN.into(), text.clone());
                return Ok(Some(MediaSource::Text { media_type, text }));
            }
            MediaSource::Url { url } if (self.is_fetched)(medium, url) => return Ok(None),
            MediaSource::Url { url } => {
                data_uri(url).ok_or("this provider reads no such address")?
            }
            MediaSource::Base64 { media_type, data } => (media_type.as_str(), data.as_str()),
        };
        let known = (self.media_type)(medium, stated);
        let media_type = known.ok_or("this provider does not read its media type")?;
        let stays = media_type == stated && matches!(source, MediaSource::Base64 { .. });
        Ok((!stays)
            .then(|| MediaSource::Base64 { media_type: media_type.into(), data: data.into() }))
    }
}

/// The rules of a provider for the blocks of a thread. The defaults hold for most dialects.
pub(super) trait Rules {
    /// Checks or replaces a source. `reader` is the codec that read its block, if it was read in a
    /// body.
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource;

    /// The provider's limits for pictures, in a request with this many pictures and documents.
    fn pictures(&self, _count: usize) -> Pictures {
        Pictures::OPENAI
    }

    /// Why the provider would refuse reasoning; `None` if it accepts it.
    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str>;

    /// Whether a system message may stay in the thread, after a message of role `before`. Otherwise
    /// it becomes a user message.
    fn keeps_system(&self, _message: &Message, _before: Option<Role>) -> bool {
        true
    }

    /// Whether a message of the user has a field for its author. Otherwise the author is written around
    /// the texts.
    fn takes_author(&self) -> bool {
        false
    }

    /// Whether a message of this role may hold images and documents.
    fn takes_media(&self, role: Role, _is_own: bool) -> bool {
        role == Role::User
    }

    /// Whether a document of a text or an address is written as text in a message of this role.
    fn writes_as_text(&self, _role: Role, _source: &MediaSource) -> bool {
        false
    }

    /// Whether the texts of a result may be blank.
    fn takes_blank(&self) -> bool {
        false
    }

    /// Whether this provider knows the form of a server call, or of the result of one.
    fn knows_server_call(&self, _block: &ContentBlock) -> bool {
        false
    }

    /// Changes a block that is written as text.
    fn text(&self, _: Role, _: &mut ContentBlock, _: &mut Notes) {}

    /// Whether the title of a document is written.
    fn takes_title(&self, _document: &Document) -> bool {
        true
    }

    /// Whether the context of a document is written.
    fn takes_context(&self) -> bool {
        false
    }

    /// Changes a call whose input has no form in the dialect.
    fn call(&self, call: &mut ToolUse, notes: &mut Notes) {
        make_object(call, notes);
    }

    /// Changes a result after its content was fitted.
    fn result(&self, _: &mut ToolResult, _: &mut Notes) {}

    /// Why an opaque block may not be in a message of this role, or in a result if there is no
    /// role.
    fn opaque_fault(&self, _: Option<Role>, _: &Opaque) -> Option<&'static str> {
        None
    }
}

/// Returns the messages that the provider accepts. Messages that lose all their blocks are left
/// out.
pub(super) fn thread(rules: &dyn Rules, messages: Thread, notes: &mut Notes) -> Thread {
    let foreign = foreign_server_calls(rules, &messages, notes.codec());
    let has_authors = messages.iter().any(|(_, message)| message.author.is_some());
    let mut thread: Thread = Vec::with_capacity(messages.len());
    for (at, mut message) in messages {
        notes.turn_to(at);
        let before = thread.last().map(|(_, last)| last.role);
        if message.role != Role::System || rules.keeps_system(&message, before) {
            leave_out_account(&mut message, notes);
            if has_authors && !rules.takes_author() {
                texts::write_author(&mut message);
            }
            fit_message(rules, &mut message, &foreign, notes);
        } else {
            make_user(&mut message, notes);
        }
        thread.extend(Some((at, message)).filter(|(_, it)| !it.content.is_empty()));
    }
    pictures::limit(&mut thread, &|count| rules.pictures(count), notes);
    thread
}

/// Leaves the account of this crate out of the message of a compaction that this provider made. The
/// provider keeps the reasoning of the messages after its block only if nothing stands between, and
/// reads in the block what the account says for others.
fn leave_out_account(message: &mut Message, notes: &mut Notes) {
    let codec = notes.codec();
    let is_own = |block: &ContentBlock| matches!(block, ContentBlock::Opaque(it) if it.codec == codec && it.is_compaction());
    if !message.is_summary() || !message.content.iter().any(is_own) {
        return;
    }
    fit_blocks(message, |block| {
        matches!(block, ContentBlock::Opaque(_))
            || notes.drop_block(block.kind(), "the provider's own compaction stands for it")
    });
}

/// Returns the system prompt that the provider accepts, without blank texts.
pub(super) fn system(rules: &dyn Rules, system: &[Message], notes: &mut Notes) -> Vec<Message> {
    let mut fitted = system.to_vec();
    fitted.retain_mut(|message| {
        fit_message(rules, message, &HashSet::new(), notes);
        !message.content.is_empty() || notes.drop_block("system message", "it has no content")
    });
    fitted
}

/// The model of the request, for providers that sign reasoning.
#[derive(Debug)]
pub(super) struct Target {
    codec: &'static str,
    pub(super) name: Option<Text>,
    /// Whether it is the model of the request that was read.
    is_same: bool,
    pub(super) options: EncodeOptions,
}

impl Target {
    /// Returns the model of the options, or else the one that the request names under this key.
    pub(super) fn new(
        (codec, key): (&'static str, &str),
        request: &Request,
        options: &EncodeOptions,
    ) -> Self {
        let own = text_mark(codec, &request.extra, key);
        let is_same = options.model.is_none() || options.model == own;
        Self { codec, name: options.model.clone().or(own), is_same, options: options.clone() }
    }

    /// Whether a system message may stay in the thread, after a message of role `before`: it was
    /// read there in a body for this model, or the model accepts it.
    pub(super) fn keeps_system(&self, message: &Message, before: Option<Role>) -> bool {
        let accepts = matches!(before, Some(Role::User | Role::System));
        (self.is_same && message.extra.get(self.codec, mark::ROLE).is_some())
            || (self.options.accepts_inner_system && accepts)
    }

    /// Whether this model made a message, as far as both names are known.
    pub(super) fn made(&self, message: &Message) -> bool {
        let made = message.origin.as_ref().and_then(|origin| origin.model.as_ref());
        let names = self.name.as_ref().zip(made);
        // A name without a version, such as an alias, can be any.
        let is_known = |name: &Text| model_version(name).is_some();
        names.is_none_or(|(name, made)| {
            is_same_model(name, made) || !is_known(name) || !is_known(made)
        })
    }

    /// Whether a model of Anthropic can read the thinking in a message. Each model that binds its
    /// thinking reads only its own, and only the thinking of Haiku 5.5 is read by others (AWS,
    /// "Preserved thinking", November 2026).
    fn reads_thinking_of(&self, message: &Message) -> bool {
        let made = message.origin.as_ref().and_then(|origin| origin.model.as_ref());
        let Some(made) = made else { return true };
        let is_checked =
            self.options.binds_reasoning || EncodeOptions::for_model(made).binds_reasoning;
        !is_checked || self.made(message) || made.contains("haiku-5-5")
    }

    /// Why the provider would refuse signed reasoning; `None` if it accepts it. It must be this
    /// provider's own, and for some models no message before it may have been changed.
    pub(super) fn reasoning_fault(
        &self,
        message: &Message,
        block: &ContentBlock,
        needs_signature: bool,
    ) -> Option<&'static str> {
        let is_own = is_made_by(message, self.codec);
        let is_unsigned = matches!(block, ContentBlock::Thinking(Thinking { signature, .. })
            if signature.as_ref().is_none_or(|it| it.is_empty()) && (needs_signature || !is_own));
        let reader = extra(block).and_then(Extra::codec);
        if message.origin.is_some() && !is_own {
            return Some("another provider signed it");
        }
        if message.role != Role::Assistant {
            return Some("only the model thinks");
        }
        if self.options.binds_reasoning && message.prefix_rewritten {
            return Some("what it was thought on was rewritten");
        }
        if !self.reads_thinking_of(message) {
            return Some("another model thought it");
        }
        if is_unsigned {
            return Some("it is not signed");
        }
        reader.is_some_and(|reader| reader != self.codec).then_some("another provider signed it")
    }
}

/// Returns the ids of the server calls that this provider cannot use: another provider made them,
/// or it does not know the type of the call or of its result. One id covers a call and its result,
/// because both are left out.
pub(super) fn foreign_server_calls(
    rules: &dyn Rules,
    messages: &Thread,
    codec: &str,
) -> HashSet<Text> {
    let mut ids = HashSet::new();
    for (_, message) in messages {
        let origin = message.origin.as_ref().map(|origin| origin.provider.as_str());
        for block in &message.content {
            let Some((extra, id)) = server_call(block) else { continue };
            let is_foreign = extra.codec().or(origin).is_some_and(|owner| owner != codec);
            if is_foreign || !rules.knows_server_call(block) {
                ids.insert(id.clone());
            }
        }
    }
    ids
}

/// Removes the server calls without a result that a question follows, which providers refuse. A call
/// that the provider still works on is followed by nothing, or by results that it waits for. Unless
/// an answer at the end `stays` there, [`fit_end`] appends a question.
pub(super) fn drop_unanswered(messages: &mut Thread, stays: bool, notes: &mut Notes) {
    let results =
        messages.iter().flat_map(|(_, message)| &message.content).filter_map(server_result);
    let answered: HashSet<Text> = results.cloned().collect();
    let asks = |message: &Message| {
        message.role != Role::Assistant && message.tool_results().next().is_none()
    };
    let last = messages.iter().rfind(|(_, message)| message.role != Role::System);
    let is_continued = last.is_some_and(|(_, last)| last.role == Role::Assistant) && !stays;
    let last_question = messages.iter().rposition(|(_, message)| asks(message)).unwrap_or(0);
    let end = if is_continued { messages.len() } else { last_question };
    let is_unanswered = |block: &ContentBlock| matches!(block, ContentBlock::ServerToolUse(call) if !answered.contains(&call.id));
    for (at, message) in messages.iter_mut().take(end) {
        if message.content.iter().any(is_unanswered) {
            notes.turn_to(*at);
            fit_blocks(message, |block| {
                !is_unanswered(block) || notes.drop_block(block.kind(), "its result is missing")
            });
        }
    }
    messages.retain(|(_, message)| !message.content.is_empty());
}

/// The id of the call that a result of a server tool answers.
fn server_result(block: &ContentBlock) -> Option<&Text> {
    if let ContentBlock::ServerToolResult(result) = block {
        Some(&result.tool_use_id)
    } else {
        None
    }
}

fn fit_message(
    rules: &dyn Rules,
    message: &mut Message,
    foreign: &HashSet<Text>,
    notes: &mut Notes,
) {
    let mut content = std::mem::take(&mut message.make_mut().content);
    content.retain_mut(|block| {
        if server_call(block).is_some_and(|(_, id)| foreign.contains(id))
            && message.role != Role::System
        {
            return notes.drop_block(block.kind(), "another provider's server tool");
        }
        fit_block(rules, message, block, notes) && clear_fields(block, notes)
    });
    let parts = message.make_mut();
    parts.content = content;
    notes.clear(&mut parts.extra);
}

/// Applies the rules to a block of a message.
fn fit_block(
    rules: &dyn Rules,
    message: &Message,
    block: &mut ContentBlock,
    notes: &mut Notes,
) -> bool {
    let (role, is_own) = (message.role, is_made_by(message, notes.codec()));
    match block {
        blocks!(text) if role == Role::System && block.is_blank() => {
            return notes.drop_block(block.kind(), "blank text");
        }
        blocks!(text) => rules.text(role, block, notes),
        ContentBlock::Opaque(opaque) => return fit_opaque(rules, Some(role), opaque, notes),
        ContentBlock::Image(_) if rules.takes_media(role, is_own) => {
            return fit_image(rules, block, notes);
        }
        ContentBlock::Document(document)
            if rules.takes_media(role, false) || rules.writes_as_text(role, &document.source) =>
        {
            return fit_document(rules, role, block, notes);
        }
        _ if role == Role::System => {
            return notes.drop_block(block.kind(), "a system message is text");
        }
        blocks!(media) => return notes.drop_block(block.kind(), "only users send it"),
        blocks!(reasoning) => {
            let fault = rules.reasoning_fault(message, block);
            return fault.is_none_or(|reason| notes.drop_reasoning(reason));
        }
        ContentBlock::ToolUse(call) => rules.call(call, notes),
        ContentBlock::ToolResult(result) => {
            result
                .content
                .retain_mut(|block| fit_nested(rules, block, notes) && clear_fields(block, notes));
            rules.result(result, notes);
        }
        blocks!(server) => {}
    }
    true
}

/// Applies the rules to a block of a tool result.
fn fit_nested(rules: &dyn Rules, block: &mut ContentBlock, notes: &mut Notes) -> bool {
    match block {
        ContentBlock::Text(TextBlock { text, extra })
            if text.is_blank()
                && extra.get(notes.codec(), mark::BLANK).is_none()
                && !rules.takes_blank() =>
        {
            notes.drop_block(block.kind(), "blank text")
        }
        blocks!(text) => {
            rules.text(Role::User, block, notes);
            true
        }
        ContentBlock::Image(_) => fit_image(rules, block, notes),
        ContentBlock::Document(_) => fit_document(rules, Role::User, block, notes),
        ContentBlock::Opaque(opaque) => fit_opaque(rules, None, opaque, notes),
        blocks!(reasoning) | blocks!(call) => {
            notes.drop_block(block.kind(), "a tool result cannot hold it")
        }
    }
}

fn fit_opaque(rules: &dyn Rules, role: Option<Role>, opaque: &Opaque, notes: &mut Notes) -> bool {
    if opaque.codec != notes.codec() {
        return notes.drop_block("opaque", &format!("only {} understands it", opaque.codec));
    }
    rules.opaque_fault(role, opaque).is_none_or(|reason| notes.drop_block("opaque", reason))
}

fn fit_image(rules: &dyn Rules, block: &mut ContentBlock, notes: &mut Notes) -> bool {
    let ContentBlock::Image(image) = block else { return true };
    match rules.pictures(1).fit(image, notes) {
        Ok(judged) => image.source = judged.unwrap_or_else(|| image.source.clone()),
        Err(reason) => {
            *block = stand_in(image, reason, notes);
            return true;
        }
    }
    match rules.source(&image.source, Medium::Image, image.extra.codec()) {
        Ok(source) => image.source = source.unwrap_or_else(|| image.source.clone()),
        Err(reason) => return notes.drop_block("image", reason),
    }
    true
}

fn fit_document(
    rules: &dyn Rules,
    role: Role,
    block: &mut ContentBlock,
    notes: &mut Notes,
) -> bool {
    let ContentBlock::Document(document) = block else { return true };
    if let MediaSource::Text { text, .. } | MediaSource::Url { url: text } = &document.source
        && rules.writes_as_text(role, &document.source)
    {
        let text = as_text(document, text);
        if text.is_blank() {
            return notes.drop_block("document", "blank text");
        }
        notes.note(Change::BlockAsText { kind: "document".into() });
        // The fields of a document have no meaning for a text, so remove them; fields of another
        // codec are reported.
        notes.clear(&mut document.extra);
        *block = ContentBlock::text(markup::plain(&text));
        return true;
    }
    match rules.source(&document.source, Medium::Document, document.extra.codec()) {
        Ok(None) => {}
        Ok(Some(source)) => {
            if let MediaSource::Text { .. } = source {
                // The media type of the document is lost, so report the change.
                notes.note(Change::BlockAsText { kind: "document".into() });
            }
            document.source = source;
        }
        Err(reason) => return notes.drop_block("document", reason),
    }
    if !rules.takes_title(document) && document.title.take().is_some() {
        notes.drop_block("document title", "the dialect has no form for it");
    }
    if !rules.takes_context() && document.context.take().is_some() {
        notes.drop_block("document context", "the dialect has no form for it");
    }
    true
}

/// The lines of a document as text: its title, its context, and its text or address.
fn as_text(document: &Document, text: &Text) -> Text {
    let lines = document.title.iter().chain(&document.context).chain([text]).map(Text::as_str);
    lines.collect::<Vec<_>>().join("\n").into()
}

/// Whether the provider of this codec made a message.
pub(super) fn is_made_by(message: &Message, codec: &str) -> bool {
    message.origin.as_ref().is_some_and(|origin| origin.provider == codec)
}

/// The fields and the id of a server call, or of the result of one.
fn server_call(block: &ContentBlock) -> Option<(&Extra, &Text)> {
    extra(block).zip(call_id(block)).filter(|_| matches!(block, blocks!(server)))
}
