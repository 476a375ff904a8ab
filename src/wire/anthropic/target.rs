//! Where a body goes, and the parameters that depend on it.

use super::{
    draft::{Block, Draft},
    forms::NAME,
    params,
};
use crate::{
    message::{Json, Request, Role, ToolChoice},
    wire::{
        contract::{Change, EncodeOptions, ModelTraits},
        notes::Notes,
        tree::{Object, Tree},
    },
};

/// What the answer may have where the request does not say: the dialect demands a limit.
const MAX_OUTPUT: u64 = 4096;

/// The model that a body goes to.
#[derive(Debug)]
pub(super) struct Target {
    /// Its name; none in a body that is a thread at rest.
    pub(super) model: Option<Tree>,
    /// Whether it is the one that the request was written for.
    pub(super) is_same: bool,
    pub(super) traits: ModelTraits,
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
        }
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
    tools: &[Tree],
    drafts: &[Draft],
    notes: &mut Notes,
) -> Head {
    let mut fields = Object::default();
    notes.turn_to(None);
    fields.set_some("model", target.model.clone());
    params::write_limit(&mut fields, request);
    let is_null = |limit: &Tree| *limit == Tree::Raw(Json::default());
    if target.model.is_some() && fields.get("max_tokens").is_none_or(is_null) {
        fields.set("max_tokens", MAX_OUTPUT);
        notes.note(Change::MaxOutputSet { tokens: MAX_OUTPUT });
    }
    params::write(&mut fields, request, tools);
    let wanted = [
        ("temperature", request.temperature.is_some()),
        ("tool_choice", request.tool_choice.is_some()),
    ];
    for (name, _) in wanted.into_iter().filter(|(name, is)| *is && fields.get(name).is_none()) {
        drop_parameter(name, notes);
    }
    let left_out = write_thinking(request, drafts, &mut fields, notes);
    Head { fields, left_out }
}

/// Thinking with a fixed budget cannot be combined with everything. Returns the parameter that
/// has to be left out.
fn write_thinking(
    request: &Request,
    drafts: &[Draft],
    fields: &mut Object,
    notes: &mut Notes,
) -> Option<&'static str> {
    if !params::thinks_manually(&request.extra) {
        return None;
    }
    if loop_has_no_reasoning(drafts) {
        drop_parameter("thinking", notes);
        return Some("thinking");
    }
    let forces = matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    if forces && fields.get("tool_choice").is_some() {
        drop_parameter("tool_choice", notes);
        fields.set("tool_choice", Object::typed("auto"));
    }
    None
}

fn drop_parameter(name: &str, notes: &mut Notes) {
    notes.note(Change::ParameterDropped { name: name.into() });
}

/// Whether the thread ends in results of a tool loop that has no reasoning. The provider demands
/// that such a loop begins with some. Where reasoning stands in it, but not at its beginning, the
/// request is left as it is: without thinking that reasoning would be refused.
fn loop_has_no_reasoning(drafts: &[Draft]) -> bool {
    let spoken: Vec<&Draft> = drafts.iter().filter(|draft| draft.role != Role::System).collect();
    let is_result = |draft: &&Draft| draft.blocks.iter().any(Block::is_result);
    let is_loop = |turn: &&[&Draft]| {
        turn.iter().any(|draft| draft.role == Role::Assistant) || turn.iter().any(is_result)
    };
    // The provider takes neighbours of one role for one turn.
    let mut turns = spoken.chunk_by(|left, right| left.role == right.role).rev();
    if !turns.next().is_some_and(|last| last.iter().any(is_result)) {
        return false;
    }
    let mut answers = turns.take_while(is_loop).flatten().peekable();
    answers.peek().is_some() && !answers.any(|draft| draft.blocks.iter().any(Block::is_reasoning))
}
