//! The checks of every request that leaves the session.

use std::collections::HashSet;
use std::sync::Arc;

use threadfold::{
    ContentBlock, Message, Request, Role, TokenCounter, legality,
    message::Text,
    tokens::ByteEstimate,
    wire::{Adjustment, Change, Dialect, EncodeOptions},
};

use super::fault::{Fault, Kind};

/// One in this many requests is encoded unchanged. An optimised build can afford all of them.
const AS_IT_IS: usize = if cfg!(debug_assertions) { 128 } else { 1 };

/// How many characters of each text are encoded of the other requests.
const FIRST: usize = 60;

/// Checks requests. If a request only grew, just the new messages are encoded, with the beginnings
/// of their texts: no codec changes anything further down in a text. So checking all requests takes
/// time linear in the messages.
#[derive(Debug, Default)]
pub(super) struct Checks {
    last: Arc<Vec<Message>>,
    asked: usize,
}

impl Checks {
    /// Returns the fault of a request of the conversation, of which at most `most` tokens may be
    /// sent.
    pub(super) fn conversation(&mut self, request: &Request, most: u64) -> Option<Fault> {
        let from = self.grew_from(&request.messages);
        self.last = request.messages.clone();
        let fault = Self::question(request, most).or_else(|| repeated(&request.messages));
        fault.or_else(|| match from {
            _ if self.is_looked_at_closely() => encoded(request),
            Some(from) => encoded(&tail(request, from)),
            None => encoded(&outline(request)),
        })
    }

    /// Returns the fault of a request for a summary.
    pub(super) fn summary(&mut self, request: &Request, most: u64) -> Option<Fault> {
        Self::question(request, most).or_else(|| match self.is_looked_at_closely() {
            true => encoded(request),
            false => encoded(&outline(request)),
        })
    }

    fn is_looked_at_closely(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_multiple_of(AS_IT_IS)
    }

    fn question(request: &Request, most: u64) -> Option<Fault> {
        let tokens = ByteEstimate::TRIGGER.request(request);
        let (count, output) = (request.messages.len(), request.max_output);
        // The window must also hold the answer, if the request sets its length.
        if tokens.saturating_add(output.unwrap_or(0)) > most {
            let what = format!("{tokens} tokens in {count} messages, {output:?} for the answer");
            return Some(Fault::new(Kind::TooLong, format!("{what}, {most} may go out")));
        }
        let violation = legality::violations(&request.messages).into_iter().next();
        let illegal = violation.map(|violation| violation.to_string()).or_else(|| {
            let open = request.messages.last()?.tool_uses().next()?;
            Some(format!("call {} at the end has no result", open.id))
        });
        illegal.map(|what| Fault::new(Kind::Illegal, format!("{what}; {count} messages")))
    }

    /// Returns the first message of the round that was added, if all messages before it are
    /// unchanged.
    fn grew_from(&self, messages: &[Message]) -> Option<usize> {
        let same = self.last.iter().zip(messages).take_while(|(one, other)| one.ptr_eq(other));
        if same.count() < self.last.len() {
            return None;
        }
        let before = messages.get(..self.last.len())?;
        let answer = before.iter().rposition(|message| message.role == Role::Assistant)?;
        let others = before.get(..answer)?.iter().rposition(|it| it.role != Role::Assistant);
        others.map(|last| last + 1)
    }
}

/// Returns the end of a request from an answer on, shortened, after a user message. System prompt
/// and tools stay.
fn tail(request: &Request, from: usize) -> Request {
    let mut messages = vec![Message::user("Go on.")];
    messages.extend(request.messages.iter().skip(from).cloned());
    outline(&Request::new(messages))
}

/// Returns the request with the beginnings of its texts.
fn outline(request: &Request) -> Request {
    let messages = request.messages.iter().cloned().map(|mut message| {
        if message.content.iter().any(is_long) {
            message.make_mut().content.iter_mut().for_each(cut);
        }
        message
    });
    Request { messages: messages.collect::<Vec<_>>().into(), ..request.clone() }
}

fn is_long(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(block) => block.text.len() > FIRST,
        ContentBlock::Summary(block) => block.text.len() > FIRST,
        ContentBlock::ToolResult(result) => result.content.iter().any(is_long),
        _ => false,
    }
}

fn cut(block: &mut ContentBlock) {
    match block {
        ContentBlock::Text(block) => block.text = beginning(&block.text),
        ContentBlock::Summary(block) => block.text = beginning(&block.text),
        ContentBlock::ToolResult(result) => result.content.iter_mut().for_each(cut),
        _ => {}
    }
}

fn beginning(text: &Text) -> Text {
    text.chars().take(FIRST).collect::<String>().into()
}

/// Finds a checkpoint that is in the thread twice, so that it cannot be named.
fn repeated(messages: &[Message]) -> Option<Fault> {
    let mut seen = HashSet::new();
    messages.iter().flat_map(|message| &message.content).find_map(|block| {
        let ContentBlock::Checkpoint(checkpoint) = block else { return None };
        let twice = !seen.insert(checkpoint.id);
        twice.then(|| format!("checkpoint {} stands twice", checkpoint.id).into())
    })
}

/// Finds a change that a codec had to make.
fn encoded(request: &Request) -> Option<Fault> {
    let codecs: [Dialect; 2] = [Dialect::Anthropic, Dialect::OpenAiChat];
    // Of a message that only calls tools of the server, which left no result, nothing is sent.
    let is_left_out = |message: &&Message| {
        message.content.iter().all(|block| matches!(block, ContentBlock::ServerToolUse(_)))
    };
    let first = request.messages.iter().take_while(is_left_out).count();
    codecs.into_iter().find_map(|codec| {
        let encoded = codec.encode(request, &EncodeOptions::default());
        let bad = encoded.adjustments.into_iter().find(|it| is_repair(codec.name(), it, first));
        let repaired = |adjustment| format!("{} had to repair it: {adjustment}", codec.name());
        bad.map(|adjustment| Fault::new(Kind::Illegal, repaired(adjustment)))
    })
}

/// Whether an adjustment repairs a fault of the session. Content for which only the dialect has no
/// form is not a fault: ids and inputs as the model wrote them, reasoning of another provider,
/// results of white space only, a thread that begins with an assistant's summary. Neither is a call
/// of a server tool that the provider left without its result. `first` is the first message of which
/// something is sent.
fn is_repair(codec: &str, adjustment: &Adjustment, first: usize) -> bool {
    let anthropic = codec == "anthropic-messages";
    match &adjustment.change {
        Change::UserInserted => adjustment.message.is_none_or(|at| at > first),
        Change::IdRewritten { .. }
        | Change::InputWrapped { .. }
        | Change::MaxOutputSet { .. }
        | Change::ToolDeclared { .. } => false,
        Change::BlockDropped { kind, reason } => {
            let blank = kind == "text" && reason == "blank text";
            let foreign = !anthropic && kind.starts_with("server_tool");
            let unanswered = kind == "server_tool_use" && reason == "its result is missing";
            !blank && !foreign && !unanswered
        }
        // Anthropic accepts runs of one role and requires results first; the reasoning here is its
        // own.
        Change::Merged | Change::BlockMoved { .. } | Change::ReasoningDropped { .. } => anthropic,
        Change::Repaired { .. }
        | Change::BlockAsText { .. }
        | Change::FieldsDropped { .. }
        | Change::SystemMoved
        | Change::ParameterDropped { .. }
        | Change::CacheMarksDropped { .. }
        | _ => true,
    }
}
