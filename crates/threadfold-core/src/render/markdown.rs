//! Messages and their blocks as Markdown.

use std::fmt::{self, Write};

use super::{
    body::Body,
    lookalikes::Lookalikes,
    marks::{heading, inline, prose},
    options::RenderOptions,
    tools,
};
use crate::message::{
    ContentBlock, ContextUpdate, Document, MediaSource, Message, Text, ToolResult, ToolUse,
};

/// Writes messages one after another.
pub(super) struct Markdown<'a> {
    options: &'a RenderOptions,
    /// The content of the next fence. Kept only to reuse its memory.
    body: Body<'a>,
    /// The findings in the latest text. Kept only to reuse their memory.
    lookalikes: Lookalikes,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(options: &'a RenderOptions) -> Self {
        Self { options, body: Body::default(), lookalikes: Lookalikes::default() }
    }

    pub(super) fn message(&mut self, message: &'a Message, out: &mut impl Write) -> fmt::Result {
        match &message.author {
            Some(author) => write!(out, "# {} ({author}):\n\n", message.role)?,
            None => write!(out, "# {}:\n\n", message.role)?,
        }
        let with_ids = self.options.tool_ids
            || message.tool_uses().nth(1).is_some()
            || message.tool_results().nth(1).is_some();
        let mut under_heading = false;
        for block in &message.content {
            if let ContentBlock::Text(text) = block {
                if !text.text.is_blank() {
                    out.write_str(if under_heading { "## text\n\n" } else { "" })?;
                    prose(out, &text.text, &mut self.lookalikes)?;
                    under_heading = false;
                }
            } else {
                under_heading |= self.write_block(block, with_ids, out)?;
            }
        }
        Ok(())
    }

    /// Writes a block under its heading, unless the options hide it. Returns whether it was
    /// written.
    fn write_block(
        &mut self,
        block: &'a ContentBlock,
        with_ids: bool,
        out: &mut impl Write,
    ) -> Result<bool, fmt::Error> {
        let options = self.options;
        let kind = block.kind();
        match block {
            ContentBlock::Text(block) => self.titled(kind, &block.text, out)?,
            ContentBlock::Image(image) => heading(out, kind, media_type(&image.source), [])?,
            ContentBlock::Document(document) => self.document(document, out)?,
            ContentBlock::Thinking(block) if options.thinking && !block.text.is_blank() => {
                self.titled(kind, &block.text, out)?;
            }
            ContentBlock::RedactedThinking(_) if options.thinking => heading(out, kind, "", [])?,
            ContentBlock::ToolUse(call) => self.call(call, with_ids, out)?,
            ContentBlock::ToolResult(result) => self.result(result, with_ids, out)?,
            ContentBlock::ServerToolUse(call) => {
                heading(out, kind, &call.name, with_ids.then_some(call.id.as_str()))?;
                self.body.clear();
                tools::push_input(&mut self.body, call.input.as_str(), options);
                self.body.write(out, "json")?;
            }
            ContentBlock::ServerToolResult(result) => {
                tools::server_result(result, options, &mut self.body, out)?;
            }
            ContentBlock::SystemReminder(block) if options.reminders => {
                self.titled(kind, &block.text, out)?;
            }
            ContentBlock::ContextUpdate(update) => self.context(update, out)?,
            ContentBlock::Checkpoint(mark) if options.checkpoints => {
                heading(out, kind, mark.id.as_str(), [])?;
            }
            ContentBlock::Summary(summary) => self.titled(kind, &summary.text, out)?,
            ContentBlock::Opaque(opaque) => {
                let size = format!("{} bytes", opaque.value.as_str().len());
                heading(out, kind, &opaque.codec, [size.as_str()])?;
            }
            ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::Checkpoint(_) => return Ok(false),
        }
        Ok(true)
    }

    fn titled(&mut self, kind: &str, text: &Text, out: &mut impl Write) -> fmt::Result {
        heading(out, kind, "", [])?;
        if text.is_blank() { Ok(()) } else { prose(out, text, &mut self.lookalikes) }
    }

    fn call(&mut self, call: &'a ToolUse, with_id: bool, out: &mut impl Write) -> fmt::Result {
        let options = self.options;
        let is_json = tools::is_object(&call.input);
        let id = with_id.then_some(call.id.as_str());
        let notes = id.into_iter().chain((!is_json).then_some("not JSON"));
        heading(out, "tool_use", &call.name, notes)?;
        self.body.clear();
        if is_json {
            tools::push_input(&mut self.body, call.input.as_str(), options);
            self.body.write(out, "json")
        } else {
            self.body.push(call.input.as_str());
            self.body.cap(options.tool_input_cap);
            self.body.write(out, "")
        }
    }

    fn result(
        &mut self,
        result: &'a ToolResult,
        with_id: bool,
        out: &mut impl Write,
    ) -> fmt::Result {
        let options = self.options;
        self.body.clear();
        tools::push_result(&mut self.body, result, options);
        let id = with_id.then_some(result.tool_use_id.as_str());
        let error = result.is_error.then_some("error");
        let notes = id.into_iter().chain(error);
        if self.body.len() == 0 {
            return heading(out, "tool_result", "", notes.chain(["empty"]));
        }
        heading(out, "tool_result", "", notes)?;
        self.body.cap(options.tool_result_cap);
        self.body.write(out, "")
    }

    fn document(&mut self, document: &'a Document, out: &mut impl Write) -> fmt::Result {
        let kind = media_type(&document.source);
        match document.title.as_deref() {
            Some(title) => {
                heading(out, "document", title, [kind].into_iter().filter(|kind| !kind.is_empty()))?
            }
            None => heading(out, "document", kind, [])?,
        }
        let MediaSource::Text { text, .. } = &document.source else { return Ok(()) };
        if !self.options.document_texts || text.is_blank() {
            return Ok(());
        }
        self.body.clear();
        self.body.push(text.as_str());
        self.body.cap(self.options.tool_result_cap);
        self.body.write(out, "")
    }

    fn context(&mut self, update: &'a ContextUpdate, out: &mut impl Write) -> fmt::Result {
        out.write_str("## context_update")?;
        for (index, path) in update.paths.iter().enumerate() {
            out.write_str(if index == 0 { ": `" } else { ", `" })?;
            inline(out, path)?;
            out.write_str("`")?;
        }
        out.write_str("\n\n")?;
        if !self.options.context_texts || update.text.is_blank() {
            return Ok(());
        }
        self.body.clear();
        self.body.push(update.text.as_str());
        self.body.write(out, "")
    }
}

/// Returns the media type of an image or document, or its location if the type is unknown.
fn media_type(source: &MediaSource) -> &str {
    match source {
        MediaSource::Base64 { media_type, .. } | MediaSource::Text { media_type, .. } => media_type,
        // A data URL contains the data after the comma.
        MediaSource::Url { url } => {
            url.split(',').next().filter(|head| head.starts_with("data:")).unwrap_or(url)
        }
        MediaSource::File { id } => id,
        MediaSource::Opaque { codec, .. } => codec,
    }
}
