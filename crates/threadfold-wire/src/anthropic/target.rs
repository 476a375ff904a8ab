//! Where a body goes, and the parameters that depend on it.

use std::collections::HashSet;

use super::{
    forms::{self, NAME},
    media,
    params::{self, thinking_type},
};
use crate::{
    cache,
    contract::{Change, EncodeOptions, ModelTraits},
    json::{Object, Tree},
    normal::{Kinds, Thread, loop_has_no_reasoning},
    notes::Notes,
    params::thinks_manually,
    rules::{FittedSource, Medium, Rules, accepts_system_after, signed_fault},
};
use threadfold_core::message::{
    ContentBlock, Json, MediaSource, Message, Request, Role, Text, ToolChoice, ToolSpec,
};

/// The limit on the answer if the request states none: the dialect demands one.
const MAX_OUTPUT: u64 = 4096;

/// The model that a body goes to.
#[derive(Debug)]
pub(super) struct Target {
    /// The name of the model; none in a body that is only stored and asks no model.
    pub(super) model: Option<Tree>,
    /// Whether it is the one that the request was written for.
    pub(super) is_same: bool,
    pub(super) traits: ModelTraits,
    /// The server calls that another provider made or answered.
    pub(super) foreign_calls: HashSet<Text>,
}

impl Target {
    pub(super) fn new(request: &Request, options: &EncodeOptions) -> Self {
        let own = request.extra.get(NAME, "model").filter(|own| **own != Json::default());
        let is_own = |name: &str| {
            own.and_then(|own| own.to_value().ok()).is_some_and(|own| own.as_str() == Some(name))
        };
        Self {
            model: match &options.model {
                Some(name) => Some(name.clone().into()),
                None => own.cloned().map(Tree::Raw),
            },
            is_same: options.model.as_ref().is_none_or(|name| is_own(name)),
            traits: options.traits,
            foreign_calls: HashSet::new(),
        }
    }
}

pub(super) const CACHE: cache::Rules = cache::Rules {
    key: "cache_control",
    kind: "ephemeral",
    within: None,
    takes: |block| !block.is_reasoning() && !matches!(block, ContentBlock::Opaque(_)),
    of_user: false,
    marks: (true, true),
};

/// Takes cache marks off reasoning, where the provider refuses them.
pub(super) fn unmark_reasoning(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        let mark = |block: &ContentBlock| cache::mark(block, NAME, CACHE.key);
        let is_marked = |block: &&ContentBlock| block.is_reasoning() && mark(block).is_some();
        let count = message.content.iter().filter(is_marked).count();
        if count > 0 {
            notes.turn_to(*at).note(Change::CacheMarksDropped { count });
            let content = message.make_mut().content.iter_mut();
            let reasoning = content.filter(|block| block.is_reasoning());
            reasoning.for_each(|block| cache::set(block, NAME, CACHE.key, None));
        }
    }
}

impl Rules for Target {
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource {
        media::fit(source, medium, reader)
    }

    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str> {
        signed_fault(NAME, (message, block), self.traits, true)
    }

    fn keeps_system(&self, message: &Message, before: Option<Role>) -> bool {
        let came_so = self.is_same && message.extra.get(NAME, forms::ROLE).is_some();
        came_so || accepts_system_after(before, self.traits)
    }

    fn takes_server_call(&self, id: &Text) -> bool {
        !self.foreign_calls.contains(id)
    }

    fn is_flattened(&self, source: &MediaSource) -> bool {
        media::is_flattened(source)
    }

    fn takes_context(&self) -> bool {
        true
    }
}

/// The parameters of a body, and the name of one that must not come with the others.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) fields: Object,
    pub(super) left_out: Option<&'static str>,
}

/// Writes the parameters that have a type of their own or follow from the thread.
pub(super) fn write_head(
    request: &Request,
    target: &Target,
    tools: &[ToolSpec],
    thread: &Thread,
    notes: &mut Notes,
) -> Head {
    let mut fields = Object::default();
    notes.turn_to(None);
    fields.set_some("model", target.model.clone());
    params::MAX_OUTPUT.set(&mut fields, &request.extra, request.max_output.as_ref(), notes);
    let is_null = |limit: &Tree| *limit == Tree::Raw(Json::default());
    if target.model.is_some() && fields.get("max_tokens").is_none_or(is_null) {
        fields.set("max_tokens", MAX_OUTPUT);
        notes.note(Change::MaxOutputSet { tokens: MAX_OUTPUT });
    }
    params::write(&mut fields, request, tools, notes);
    let left_out = write_thinking(request, thread, &mut fields, notes);
    Head { fields, left_out }
}

/// Thinking with a fixed budget cannot be combined with everything. Returns the parameter that
/// has to be left out.
fn write_thinking(
    request: &Request,
    thread: &Thread,
    fields: &mut Object,
    notes: &mut Notes,
) -> Option<&'static str> {
    if !thinks_manually(thinking_type(&request.extra)) {
        return None;
    }
    if loop_has_no_reasoning(thread, Kinds::USUAL) {
        notes.drop_parameter("thinking");
        return Some("thinking");
    }
    let forces = matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    if forces && fields.get("tool_choice").is_some() {
        notes.drop_parameter("tool_choice");
        fields.set("tool_choice", Object::typed("auto"));
    }
    None
}
