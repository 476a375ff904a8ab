//! Messages of rig as messages of a host, and the new messages of a plan as messages of rig.

use std::sync::Arc;

use rig_core::message::{
    AssistantContent, AssistantMessage, DocumentSourceKind, Image, Message, ToolResult,
    ToolResultContent, UserContent,
};
use threadfold::{
    Role,
    foreign::{HostMessage, NewMessage, NewPart, NewResult, Part, ResultPart, Words},
};

/// A message of rig. Kept messages are the same allocation before and after a compaction.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<Message>);

impl HostMessage for Shared {
    fn role(&self) -> Role {
        match &*self.0 {
            Message::System { .. } => Role::System,
            Message::User { .. } => Role::User,
            Message::Assistant(_) => Role::Assistant,
        }
    }

    fn parts(&self) -> Vec<Part<'_>> {
        match &*self.0 {
            Message::System { content } => vec![Part::text(content)],
            Message::User { content } => content.iter().map(user_part).collect(),
            Message::Assistant(answer) => answer.content.iter().map(assistant_part).collect(),
        }
    }
}

fn user_part(content: &UserContent) -> Part<'_> {
    match content {
        UserContent::Text(text) => Part::text(&text.text),
        UserContent::ToolResult(result) => Part::Result {
            id: result.call.wire().into(),
            content: result.content.iter().map(result_part).collect(),
            is_error: result.is_error,
        },
        UserContent::Image(picture) => image(picture),
        UserContent::Document(document) => {
            let text = match &document.data {
                DocumentSourceKind::String(text) => Some(Words::from(text)),
                _ => None,
            };
            Part::Document { title: "".into(), text }
        }
        UserContent::Audio(audio) => native(&audio.data),
        UserContent::Video(video) => native(&video.data),
    }
}

fn assistant_part(content: &AssistantContent) -> Part<'_> {
    match content {
        AssistantContent::Text(text) => Part::text(&text.text),
        AssistantContent::ToolCall(call) => {
            let input = match &call.function.invalid_arguments {
                Some(text) => Words::from(text),
                None => call.function.arguments_value().to_string().into(),
            };
            Part::call(call.id.wire(), call.function.name.as_str(), input)
        }
        AssistantContent::Reasoning(reasoning) => Part::Reasoning((&reasoning.text).into()),
        AssistantContent::Image(picture) => image(picture),
        AssistantContent::Opaque(opaque) => Part::Native { bytes: opaque.item.to_string().len() },
        // rig may add kinds.
        _ => Part::Native { bytes: 0 },
    }
}

fn result_part(content: &ToolResultContent) -> Part<'_> {
    match content {
        ToolResultContent::Text(text) => Part::text(&text.text),
        ToolResultContent::Image(picture) => image(picture),
        ToolResultContent::Json { value } => Part::text(value.to_string()),
    }
}

fn image(image: &Image) -> Part<'_> {
    match &image.data {
        DocumentSourceKind::Base64(data) => Part::image(data),
        _ => Part::Image { pixels: None },
    }
}

fn native(data: &DocumentSourceKind) -> Part<'_> {
    let bytes = match data {
        DocumentSourceKind::Base64(text)
        | DocumentSourceKind::String(text)
        | DocumentSourceKind::Url(text)
        | DocumentSourceKind::FileId(text) => text.len(),
        DocumentSourceKind::Raw(bytes) => bytes.len(),
        DocumentSourceKind::Unknown => 0,
    };
    Part::Native { bytes }
}

/// Makes a new message of a plan. Parts that stay keep everything that rig has of them.
pub(crate) fn made(new: &NewMessage, old: &[Shared]) -> Shared {
    let message = match new.role {
        Role::System => Message::system(new.text()),
        Role::User => {
            let parts = new.parts.iter().filter_map(|part| user_content(part, old));
            Message::User { content: parts.collect() }
        }
        Role::Assistant => {
            let parts = new.parts.iter().filter_map(|part| assistant_content(part, old)).collect();
            let answer = match new.of.and_then(|of| old.get(of)).map(|old| &*old.0) {
                Some(Message::Assistant(answer)) => answer.clone().with_content(parts),
                _ => AssistantMessage::new(parts),
            };
            Message::Assistant(answer)
        }
    };
    Shared(Arc::new(message))
}

fn user_content(part: &NewPart, old: &[Shared]) -> Option<UserContent> {
    match part {
        NewPart::Text(text) => Some(UserContent::text(text.to_string())),
        NewPart::Kept { message, part, text } => match old.get(*message).map(|old| &*old.0) {
            Some(Message::User { content }) => content.get(*part).cloned(),
            _ => text.as_ref().map(|text| UserContent::text(text.to_string())),
        },
        NewPart::Result(result) => shortened(result, old).map(UserContent::ToolResult),
        NewPart::Call(_) => None,
    }
}

fn shortened(new: &NewResult, old: &[Shared]) -> Option<ToolResult> {
    let Message::User { content } = &*old.get(new.message)?.0 else { return None };
    let UserContent::ToolResult(whole) = content.get(new.part)? else { return None };
    let part = |part: &ResultPart| match part {
        ResultPart::Kept { part, .. } => whole.content.get(*part).cloned(),
        ResultPart::Text(text) => {
            Some(ToolResultContent::Text(rig_core::message::Text::new(text.to_string())))
        }
    };
    let content = new.content.iter().filter_map(part).collect();
    Some(ToolResult { content, is_error: new.is_error, ..whole.clone() })
}

fn assistant_content(part: &NewPart, old: &[Shared]) -> Option<AssistantContent> {
    match part {
        NewPart::Text(text) => Some(AssistantContent::text(text.to_string())),
        NewPart::Kept { message, part, text } => match old.get(*message).map(|old| &*old.0) {
            Some(Message::Assistant(answer)) => answer.content.get(*part).cloned(),
            _ => text.as_ref().map(|text| AssistantContent::text(text.to_string())),
        },
        NewPart::Call(call) => crate::from_ours::call(call).map(AssistantContent::ToolCall),
        NewPart::Result(_) => None,
    }
}
