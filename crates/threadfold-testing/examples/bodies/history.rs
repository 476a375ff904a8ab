//! Random legal histories, with answers of several providers in one thread.
//!
//! A history is a few pieces in a row. A piece is a [generated](legal_thread) thread, or a *fragment*: a
//! short thread in the form of a provider's SDK, from the `.jsonl` file of its dialect beside this one.
//! The fragments hold what the generator has no value for: signed reasoning on calls, the providers' own
//! compactions and tools, changes of tools, citations, cache marks, refusals.
//!
//! Answers of a fragment are of a model of its provider. Answers of a generated piece are of the thread's
//! own provider, and some of them think on messages that were rewritten since.

use std::{error::Error, sync::Arc};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rand::{Rng, rngs::Xoshiro256PlusPlus};
use serde_json::json;
use threadfold::{
    ContentBlock, Message, Request, legality,
    message::{
        Author, Extra, Json, Opaque, Origin, Role, Summary, ToolChoice, ToolResult, ToolSpec,
    },
    wire::{DecodeOptions, Dialect},
};
use threadfold_testing::generate::legal_thread;

use super::below;

/// A thread, and the provider that made most of its answers.
pub(super) struct History {
    pub(super) home: &'static Home,
    pub(super) request: Request,
}

/// A provider.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) dialect: Dialect,
    model: &'static str,
    fragments: &'static str,
    /// Its own compaction; empty if it has none.
    pub(super) compaction: &'static str,
}

const HOMES: [Home; 5] = [
    Home {
        dialect: Dialect::Anthropic,
        model: "claude-opus-5-5",
        fragments: include_str!("anthropic-messages.jsonl"),
        compaction: r#"{"type":"compaction","content":"They talked about lamps.","signature":"c2ln","tool_changes":[]}"#,
    },
    Home {
        dialect: Dialect::OpenAiResponses,
        model: "gpt-6.2-sol",
        fragments: include_str!("openai-responses.jsonl"),
        compaction: r#"{"type":"compaction","id":"cmp_native","encrypted_content":"gAAAnative"}"#,
    },
    Home {
        dialect: Dialect::Gemini,
        model: "gemini-3-pro",
        fragments: include_str!("gemini.jsonl"),
        compaction: "",
    },
    Home {
        dialect: Dialect::BedrockConverse,
        model: "anthropic.claude-opus-4-6-v1:0",
        fragments: include_str!("bedrock-converse.jsonl"),
        compaction: "",
    },
    Home {
        dialect: Dialect::OpenAiChat,
        model: "gpt-5.5",
        fragments: include_str!("openai-chat.jsonl"),
        compaction: "",
    },
];

impl History {
    /// Draws a history.
    pub(super) fn draw(random: &mut Xoshiro256PlusPlus) -> Result<Self, Box<dyn Error>> {
        let home = home(random)?;
        let (mut messages, mut tools) = (Vec::new(), Vec::new());
        if !home.compaction.is_empty() && chance(random, 4) {
            messages.push(natively_compacted(home)?);
        }
        for number in 0..1 + below(random, 4) {
            let piece = match below(random, 2) {
                0 => generated(random, home)?,
                _ => {
                    let of = if chance(random, 3) { self::home(random)? } else { home };
                    fragment(random, of, number, &mut tools)?
                }
            };
            // Only the last piece may leave calls open.
            messages = legality::repair(messages).0;
            messages.extend(piece);
        }
        name_authors(random, &mut messages)?;
        let (messages, _) = legality::repair(messages);
        if let Some(violation) = legality::violations(&messages).first() {
            return Err(format!("the history is illegal: {violation}").into());
        }
        Ok(Self { home, request: request(random, messages, tools) })
    }
}

/// A provider, each as likely as the others.
fn home(random: &mut Xoshiro256PlusPlus) -> Result<&'static Home, Box<dyn Error>> {
    Ok(HOMES.get(below(random, HOMES.len())).ok_or("there is no provider")?)
}

/// `true` once in so many times.
fn chance(random: &mut Xoshiro256PlusPlus, times: usize) -> bool {
    below(random, times) == 0
}

/// A generated thread with answers of this provider.
fn generated(random: &mut Xoshiro256PlusPlus, home: &Home) -> Result<Vec<Message>, Box<dyn Error>> {
    let mut seed = [0_u8; 32];
    random.fill_bytes(&mut seed);
    let random_of_thread = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), random_of_thread);
    let thread = legal_thread(1..8).new_tree(&mut runner).map_err(|why| why.to_string())?.current();
    let thread = thread.into_iter().map(|mut message| {
        let has_reasoning = message.has_reasoning();
        message.prefix_rewritten &= has_reasoning;
        let parts = message.make_mut();
        without_made_up_fields(&mut parts.extra);
        parts.content.iter_mut().for_each(known_block);
        if parts.role == Role::Assistant {
            // The generator's tools of a provider are Anthropic's.
            let is_served = parts.content.iter().any(|block| {
                matches!(block, ContentBlock::ServerToolUse(_) | ContentBlock::ServerToolResult(_))
            });
            let name = Dialect::Anthropic.name();
            parts.origin = Some(if is_served { Origin::new(name, None) } else { origin(home) });
        }
        message
    });
    Ok(thread.collect())
}

fn origin(home: &Home) -> Origin {
    Origin::new(home.dialect.name(), Some(home.model.into()))
}

/// Removes the fields that the generator makes up to see that they survive: no SDK knows them.
fn without_made_up_fields(extra: &mut Extra) {
    if extra.fields().any(|(key, _)| key.starts_with("x_")) {
        *extra = Extra::default();
    }
}

fn known_block(block: &mut ContentBlock) {
    match block {
        ContentBlock::Text(text) | ContentBlock::SystemReminder(text) => {
            without_made_up_fields(&mut text.extra);
        }
        ContentBlock::ToolResult(ToolResult { extra, content, .. }) => {
            without_made_up_fields(extra);
            content.iter_mut().for_each(known_block);
        }
        ContentBlock::Image(_)
        | ContentBlock::Document(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::RedactedThinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ServerToolUse(_)
        | ContentBlock::ServerToolResult(_)
        | ContentBlock::ContextUpdate(_)
        | ContentBlock::Checkpoint(_)
        | ContentBlock::Summary(_)
        | ContentBlock::Opaque(_) => {}
    }
}

/// A fragment of this provider, with ids of its own. Adds the tools that it declares.
fn fragment(
    random: &mut Xoshiro256PlusPlus,
    home: &Home,
    number: usize,
    tools: &mut Vec<ToolSpec>,
) -> Result<Vec<Message>, Box<dyn Error>> {
    let lines: Vec<&str> = home.fragments.lines().collect();
    let line = lines.get(below(random, lines.len())).ok_or("there is no fragment")?;
    let number = number * 1_000 + below(random, 1_000);
    let body = line.replace("$N", &number.to_string());
    let request = home.dialect.decode_slice(body.as_bytes(), &DecodeOptions::default())?;
    // A provider's tools are declared as long as their calls are in the thread.
    let others = request.tools.iter().filter(|tool| !tools.contains(tool));
    let others: Vec<ToolSpec> = others.cloned().collect();
    tools.extend(others);
    // Some dialects have system messages at the beginning of a body apart from the thread.
    let system = request.system.iter().cloned();
    let thread = system.chain(request.messages.iter().cloned()).map(|mut message| {
        if message.role == Role::Assistant {
            message.make_mut().origin = Some(origin(home));
        }
        message
    });
    Ok(thread.collect())
}

/// The message that the strategy `native` leaves of old messages.
fn natively_compacted(home: &Home) -> Result<Message, Box<dyn Error>> {
    let block = Opaque::new(home.dialect.name(), Json::parse(home.compaction)?);
    let account = Summary::new("The user talked about lamps in src/lamp.rs.");
    let mut message = Message::new(Role::User, vec![block.into(), account.into()]);
    message.make_mut().origin = Some(origin(home));
    Ok(message)
}

/// In every third thread, several people type.
fn name_authors(
    random: &mut Xoshiro256PlusPlus,
    messages: &mut [Message],
) -> Result<(), Box<dyn Error>> {
    if !chance(random, 3) {
        return Ok(());
    }
    let people: [Author; 2] = ["ann".parse()?, "bob-2".parse()?];
    for message in messages.iter_mut().filter(|message| message.is_typed()) {
        message.make_mut().author = people.get(below(random, 3)).cloned();
    }
    Ok(())
}

/// A request with these messages, and parameters that every provider has.
fn request(
    random: &mut Xoshiro256PlusPlus,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
) -> Request {
    let mut request = Request { tools: Arc::new(tools), ..Request::new(messages) };
    if chance(random, 2) {
        request = request.with_system("Be brief.");
    }
    if chance(random, 2) {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let tool = ToolSpec::new("read_file", "Reads a file.", schema);
        Arc::make_mut(&mut request.tools).push(tool);
        request.tool_choice = match below(random, 4) {
            0 => Some(ToolChoice::Auto),
            1 => Some(ToolChoice::Required),
            2 => Some(ToolChoice::Tool("read_file".into())),
            _ => None,
        };
    }
    request.max_output = chance(random, 2).then_some(4_096);
    request.temperature = chance(random, 3).then_some(0.5);
    request.cache = chance(random, 2);
    request
}
