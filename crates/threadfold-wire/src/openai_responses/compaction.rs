//! Compaction by OpenAI: in an answer (`compaction_trigger`, or `context_management` with
//! `compact_threshold`) and by `POST /v1/responses/compact`, as documented in September 2026.

use super::{
    OpenAiResponses, kinds,
    marks::{CODEC, opaque_item},
};
use crate::{
    compaction::{BY_GATEWAY, CompactionAsked, NativeCompaction, counts, edit},
    contract::{EncodeOptions, Encoded, WireFormat},
    extras::{reopen, without},
    json::{Fields, Object, Raw, Tree},
};
use threadfold_core::message::{
    ContentBlock, Json, Message, MessageParts, Request, Role, Summary, Text, Usage,
};

/// The fields of a request that the endpoint for compaction takes.
const OF_ENDPOINT: [&str; 7] = [
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
];

impl OpenAiResponses {
    /// Returns the body for `POST /v1/responses/compact`, which answers with all messages of the user
    /// and a compaction. [`NativeCompaction`] asks at the usual address instead.
    ///
    /// ```
    /// use threadfold::{Message, Request, wire::{EncodeOptions, OpenAiResponses}};
    ///
    /// let request = Request { max_output: Some(9), ..Request::new(vec![Message::user("Hi.")]) };
    /// let encoded = OpenAiResponses.encode_compact(&request, &EncodeOptions::default());
    /// assert_eq!(encoded.body.as_str(), r#"{"input":[{"role":"user","content":"Hi."}]}"#);
    /// ```
    pub fn encode_compact(&self, request: &Request, options: &EncodeOptions) -> Encoded {
        let encoded = self.encode(request, options);
        let fields = reopen(Some(&encoded.body)).into_iter();
        let mut body = Object::default();
        body.set_all(fields.filter(|(key, _)| OF_ENDPOINT.contains(&key.as_ref())));
        Encoded { body: Tree::from(body).into_json(), ..encoded }
    }
}

impl NativeCompaction for OpenAiResponses {
    /// The thread gets a `compaction_trigger` at its end, so tools and instructions are those of the
    /// conversation and its prompt cache applies.
    fn request(&self, mut request: Request) -> Request {
        request.extra = without(CODEC, &request.extra, "context_management");
        let trigger = Tree::from(Object::typed(kinds::TRIGGER)).into_json();
        let trigger = opaque_item(Raw::of(&trigger), None);
        request.messages.make_mut().push(Message::new(Role::User, vec![trigger]));
        request
    }

    fn asked(&self, request: &Request) -> Option<CompactionAsked> {
        let last = request.messages.last().and_then(|message| message.content.last());
        if let Some(ContentBlock::Opaque(opaque)) = last
            && Fields::parse(opaque.value.as_str())
                .is_some_and(|item| item.word("type").is_some_and(|word| word == kinds::TRIGGER))
        {
            return Some(CompactionAsked::Now { instructions: None });
        }
        let management = request.extra.get(CODEC, "context_management")?;
        let tokens = edit(management, None, kinds::COMPACTION)?.number("compact_threshold");
        Some(CompactionAsked::From { tokens, instructions: None })
    }

    /// The text stands in `encrypted_content` as it is: a gateway that wants to hide it from its
    /// client encrypts it before and decrypts what it reads.
    fn answer(&self, model: &str, summary: &str, usage: Usage) -> Json {
        let text = format!("{BY_GATEWAY}:{summary}");
        let item = Object::typed(kinds::COMPACTION).with("encrypted_content", text);
        let total = usage.input.saturating_add(usage.output);
        let response =
            Object::default().with("object", "response").with("model", Text::from(model));
        let response = response.with("status", "completed").with("output", Tree::from_iter([item]));
        Tree::from(response.with("usage", counts(usage).with("total_tokens", total))).into_json()
    }
}

/// Reads a compaction that this crate wrote for a client; `None` for one of the provider.
pub(super) fn by_gateway(fields: &Fields<'_>) -> Option<MessageParts> {
    let text = fields.text("encrypted_content")?;
    let text = text.strip_prefix(BY_GATEWAY)?.strip_prefix(':').filter(|text| !text.is_empty())?;
    Some(MessageParts::new(Role::User, vec![Summary::new(text).into()]))
}
