//! Writing request bodies.
//!
//! The thread is repaired, then written message by message, then the rules that look at several
//! messages are applied to what was written, then the parts are put together.

use super::{
    cache::Parts,
    draft::Draft,
    forms,
    names::Names,
    order::{self, Ending},
    params::{self, Forced, MODEL_FIELDS, THINKING},
    prompt,
    target::{Family, MODEL, Target, own_model},
    thread,
    write::Writer,
};
use crate::{
    message::{Json, Request},
    wire::{
        contract::{EncodeOptions, Encoded},
        fields::Fields,
        foreign, names,
        notes::{self, Notes},
        tree::{Object, Tree},
    },
};

/// Writes a request body, and says what had to be changed.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let target = Target::new(request, options);
    let (mut messages, mut notes) = notes::prepare(&request.messages, forms::NAME);
    notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, true), &mut notes);
    let names = Names::rewrite(&messages, &mut notes);
    let foreign_calls = foreign::server_calls(forms::NAME, &messages, |_| true);
    let mut writer = Writer { notes, names, foreign_calls, target: &target };
    writer.notes.turn_to(None);
    let mut system = prompt::write_system(&request.system, &mut writer);
    let mut tools = prompt::write_tools(request, &messages, &mut writer);
    let mut drafts = thread::write(&messages, &mut writer);
    let notes = &mut writer.notes;
    order::results_first(&mut drafts, notes);
    order::only_results(&mut drafts, &target, notes);
    order::text_beside_documents(&mut drafts, notes);
    order::end_well(&mut drafts, &ending(request, &target), notes);
    order::begin_well(&mut drafts, &target, request.messages.len(), notes);
    Parts { tools: &mut tools, system: &mut system, drafts: &mut drafts }.mark(
        request.cache,
        &target,
        notes,
    );
    let body = assemble(request, options, Sections { system, tools, drafts }, notes);
    Encoded { body: body.into_json(), adjustments: writer.notes.finish() }
}

fn ending(request: &Request, target: &Target) -> Ending {
    let extra = &request.extra;
    Ending {
        at: request.messages.len(),
        prefill: target.traits.accepts_prefill && !params::thinks_manually(extra),
        thoughtless: target.family == Family::Claude && params::does_not_think(extra),
    }
}

/// The parts of a body in their written form.
struct Sections {
    system: Vec<Tree>,
    tools: Vec<Tree>,
    drafts: Vec<Draft>,
}

fn assemble(
    request: &Request,
    options: &EncodeOptions,
    sections: Sections,
    notes: &mut Notes,
) -> Tree {
    let Sections { system, tools, drafts } = sections;
    let mut body = Object::default();
    notes.turn_to(None);
    // Over HTTP the name of the model stands in the address; only bodies for SDKs hold it.
    let named = options.model.as_ref().filter(|_| own_model(request).is_some());
    body.set_some(MODEL, named.cloned());
    if !system.is_empty() {
        body.set("system", system);
    } else if request.system.is_empty() {
        body.set_some("system", request.extra.get(forms::NAME, forms::SYSTEM).cloned());
    }
    let model_fields = model_fields(request, &drafts, notes);
    body.set("messages", Tree::Array(drafts.into_iter().map(Draft::into_tree).collect()));
    params::write(&mut body, request, notes);
    params::write_tools(&mut body, request, tools, model_fields.forced, notes);
    let is_written = |key: &str| {
        matches!(key, "inferenceConfig" | "toolConfig")
            || (key == MODEL_FIELDS && model_fields.rewritten.is_some())
    };
    let rest = notes.own_fields(&request.extra).filter(|(key, _)| !is_written(key));
    forms::add_rest(&mut body, rest);
    body.set_some(MODEL_FIELDS, model_fields.rewritten.filter(|fields| fields.len() > 0));
    body.into()
}

/// What thinking with a fixed budget demands of the other parameters.
struct ModelFields {
    forced: Forced,
    /// The fields for the model where one of them had to be left out.
    rewritten: Option<Object>,
}

/// Thinking with a fixed budget cannot be combined with everything.
fn model_fields(request: &Request, drafts: &[Draft], notes: &mut Notes) -> ModelFields {
    let fields = request.extra.get(forms::NAME, MODEL_FIELDS).map(Json::as_str);
    let fields = fields.and_then(Fields::parse);
    let Some(mut fields) = fields.filter(|_| params::thinks_manually(&request.extra)) else {
        return ModelFields { forced: Forced::May, rewritten: None };
    };
    if !order::loop_has_no_reasoning(drafts) {
        return ModelFields { forced: Forced::MayNot, rewritten: None };
    }
    for key in THINKING {
        if fields.take(key).is_some() {
            params::drop_parameter(key, notes);
        }
    }
    ModelFields { forced: Forced::May, rewritten: Some(forms::object(&fields)) }
}
