//! Messages of goose as messages of a host, and a plan as a conversation of goose.

use std::collections::HashSet;

use goose_provider_types::conversation::{
    Conversation,
    message::{Message, MessageContent, MessageMetadata, MessageUsage, ToolResponse},
};
use rmcp::model::{Annotations, ContentBlock, ErrorData, Role as GooseRole};
use threadfold::{
    Role, Usage,
    foreign::{HostMessage, HostPlan, NewMessage, NewPart, NewResult, Part, Piece, ResultPart},
};

use crate::from_ours;

/// Who wrote the notes on a message, and the note on those that a plan added.
const OPERATION: &str = "threadfold";
const ADDED: &str = "added";

/// A message as the model sees it.
#[derive(Debug)]
pub(crate) struct Seen<'c> {
    /// Its index in the conversation.
    at: usize,
    message: &'c Message,
    /// The parts that the model sees.
    parts: Vec<&'c MessageContent>,
}

/// Returns the messages that the model sees. Calls that nothing answered are not sent.
pub(crate) fn seen(conversation: &Conversation) -> Vec<Seen<'_>> {
    let messages = conversation.messages();
    let answered: HashSet<&str> =
        messages.iter().flat_map(|message| message.get_tool_response_ids()).collect();
    let is_sent = |part: &&MessageContent| match part {
        MessageContent::Text(text) => is_for_model(text.annotations.as_ref()),
        MessageContent::Image(image) => is_for_model(image.annotations.as_ref()),
        MessageContent::ToolRequest(call) => answered.contains(call.id.as_str()),
        _ => true,
    };
    let visible = messages.iter().enumerate().filter(|(_, message)| message.is_agent_visible());
    let seen = visible.map(|(at, message)| {
        let parts = message.content.iter().filter(is_sent).collect();
        Seen { at, message, parts }
    });
    seen.filter(|seen| !seen.parts.is_empty()).collect()
}

fn is_for_model(annotations: Option<&Annotations>) -> bool {
    let audience = annotations.and_then(|annotations| annotations.audience.as_ref());
    audience.is_none_or(|roles| roles.contains(&GooseRole::Assistant))
}

fn is_sent(content: &&ContentBlock) -> bool {
    match content {
        ContentBlock::Text(text) => is_for_model(text.annotations.as_ref()),
        ContentBlock::Image(image) => is_for_model(image.annotations.as_ref()),
        ContentBlock::Audio(audio) => is_for_model(audio.annotations.as_ref()),
        ContentBlock::Resource(resource) => is_for_model(resource.annotations.as_ref()),
        ContentBlock::ResourceLink(resource) => is_for_model(resource.annotations.as_ref()),
        _ => true,
    }
}

impl HostMessage for Seen<'_> {
    fn role(&self) -> Role {
        match self.message.role {
            GooseRole::User => Role::User,
            GooseRole::Assistant => Role::Assistant,
        }
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let is_added = self.message.metadata.operation_note(OPERATION, ADDED).is_some();
        self.parts.iter().map(|content| part(content, is_added)).collect()
    }

    /// What the user sees of the user is typed. goose hides what it adds for the model.
    fn is_typed(&self) -> bool {
        self.role() == Role::User
            && self.message.is_user_visible()
            && !self.message.is_tool_response()
    }

    fn usage(&self) -> Option<Usage> {
        let MessageUsage { input_tokens, output_tokens, .. } =
            self.message.metadata.usage.as_deref()?;
        let count = |tokens: &Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
        Some(Usage::new(count(input_tokens)?, count(output_tokens).unwrap_or_default()))
    }
}

fn part(content: &MessageContent, is_added: bool) -> Part<'_> {
    match content {
        MessageContent::Text(text) if is_added => Part::Added((&text.text).into()),
        MessageContent::Text(text) => Part::text(&text.text),
        MessageContent::Image(image) => Part::image(&image.data),
        MessageContent::Document(document) => Part::Document {
            title: document.name.as_deref().unwrap_or_default().into(),
            text: None,
        },
        MessageContent::ToolRequest(request) => match &request.tool_call {
            Ok(call) => {
                let input = serde_json::to_string(&call.arguments).unwrap_or_default();
                Part::call(&request.id, &*call.name, input)
            }
            Err(error) => Part::call(&request.id, "", &*error.message),
        },
        MessageContent::ToolResponse(response) => result(response),
        MessageContent::Thinking(thinking) => Part::Reasoning((&thinking.thinking).into()),
        MessageContent::RedactedThinking(thinking) => Part::Native { bytes: thinking.data.len() },
        // Questions to the user, notices and errors are not sent.
        _ => Part::Native { bytes: 0 },
    }
}

fn result(response: &ToolResponse) -> Part<'_> {
    let id = (&response.id).into();
    match &response.tool_result {
        Ok(result) => Part::Result {
            id,
            content: result.content.iter().filter(is_sent).map(result_part).collect(),
            is_error: result.is_error.unwrap_or(false),
        },
        Err(ErrorData { message, .. }) => {
            Part::Result { id, content: vec![Part::text(&**message)], is_error: true }
        }
    }
}

fn result_part(content: &ContentBlock) -> Part<'_> {
    match content {
        ContentBlock::Text(text) => Part::text(&text.text),
        ContentBlock::Image(image) => Part::image(&image.data),
        content => Part::text(serde_json::to_string(content).unwrap_or_default()),
    }
}

/// Returns the conversation after a plan for the messages that the model sees. What stays is as before;
/// what goes stays for the user alone, and what the plan adds is for the model alone.
pub(crate) fn folded(
    conversation: &Conversation,
    seen: &[Seen<'_>],
    plan: &HostPlan,
) -> Conversation {
    let mut hidden: HashSet<usize> = seen.iter().map(|seen| seen.at).collect();
    // Each new message stands before the message at this index.
    let (mut added, mut next): (Vec<(usize, Message)>, usize) = (Vec::new(), 0);
    for piece in plan.pieces() {
        match piece {
            Piece::Keep(range) => {
                for kept in seen.get(range.clone()).unwrap_or_default() {
                    hidden.remove(&kept.at);
                    next = kept.at + 1;
                }
            }
            Piece::New(new) => added.push((next, made(new, seen))),
        }
    }
    let mut added = added.into_iter().peekable();
    let mut folded = Vec::with_capacity(conversation.len() + added.len());
    for (at, message) in conversation.iter().enumerate() {
        while let Some((_, new)) = added.next_if(|(before, _)| *before <= at) {
            folded.push(new);
        }
        let mut message = message.clone();
        message.metadata.agent_visible &= !hidden.contains(&at);
        folded.push(message);
    }
    folded.extend(added.map(|(_, new)| new));
    Conversation::new_unvalidated(folded)
}

/// Makes a new message of a plan. Parts that stay keep everything that goose has of them.
fn made(new: &NewMessage, seen: &[Seen<'_>]) -> Message {
    let mut message = match new.of.and_then(|of| seen.get(of)) {
        Some(old) => Message { id: None, ..old.message.clone() },
        None if new.role == Role::Assistant => Message::assistant(),
        None => Message::user(),
    };
    message.metadata = MessageMetadata {
        user_visible: false,
        agent_visible: true,
        // The request of which this was the answer was another one.
        usage: None,
        ..message.metadata
    };
    if new.of.is_none() {
        message.metadata.set_operation_note(OPERATION, ADDED, true.into());
    }
    message.content = new.parts.iter().filter_map(|part| content(part, seen)).collect();
    message
}

fn content(part: &NewPart, seen: &[Seen<'_>]) -> Option<MessageContent> {
    match part {
        NewPart::Text(text) => Some(MessageContent::text(text.as_str())),
        NewPart::Kept { message, part, .. } => {
            seen.get(*message)?.parts.get(*part).map(|part| (*part).clone())
        }
        NewPart::Result(result) => shortened(result, seen).map(MessageContent::ToolResponse),
        NewPart::Call(call) => Some(from_ours::call(call)),
    }
}

fn shortened(new: &NewResult, seen: &[Seen<'_>]) -> Option<ToolResponse> {
    let old = seen.get(new.message)?.parts.get(new.part)?.as_tool_response()?;
    let mut response = old.clone();
    if let (Ok(result), Ok(whole)) = (&mut response.tool_result, &old.tool_result) {
        let sent: Vec<&ContentBlock> = whole.content.iter().filter(is_sent).collect();
        let part = |part: &ResultPart| match part {
            ResultPart::Kept { part, .. } => sent.get(*part).map(|part| (*part).clone()),
            ResultPart::Text(text) => Some(ContentBlock::text(text.as_str())),
        };
        result.content = new.content.iter().filter_map(part).collect();
        // The same again, in another form.
        result.structured_content = None;
    }
    Some(response)
}
