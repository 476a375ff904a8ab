//! Writing request bodies: the thread is made legal first, and written then.

use super::{
    marks::{CODEC, SYSTEM, Spelling, marked},
    normal::{self, Gemini},
    params, read_results, signatures, tools, write,
};
use crate::{
    contract::{EncodeOptions, Encoded},
    extras::own_object,
    json::{Object, Tree},
    names,
    normal::{Ending, Kinds, begin_with_user, fit_end},
    notes, rules,
};
use threadfold_core::message::{Message, Request, Role, Text};

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let model = options.model.clone().or_else(|| marked(&request.extra, "model"));
    let at_rest = options.traits.accepts_prefill && model.is_none();
    let end = request.messages.len();
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    if !at_rest {
        notes::answer_open_calls(&mut messages, end, &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&read_results::TOOLS, false), &mut notes);
    let rules = Gemini::new(&messages);
    let system = rules::system(&rules, &request.system, &mut notes);
    let mut thread = rules::thread(&rules, messages, &mut notes);
    normal::spread_media(&mut thread, &mut notes);
    let demanded = model.as_deref().is_some_and(signatures::are_demanded);
    signatures::sign(&mut thread, demanded, &mut notes);
    let mut thread = normal::arrange(&thread, &mut notes);
    let stays = options.traits.accepts_prefill;
    let ending = Ending { at: end, stays, prefill: false, refuses_reasoning: false };
    fit_end(&mut thread, &ending, Kinds::USUAL, &mut notes);
    begin_with_user(&mut thread, end, |_| false, &mut notes);

    let functions = request.tools.iter().filter(|tool| tools::is_function(tool));
    let functions: Vec<Text> = functions.map(|tool| tool.name.clone()).collect();
    let mut body = params::write(request, options, &functions, &mut notes);
    write_system(&system, &mut body);
    body.set("contents", Tree::Array(write::contents(&thread)));
    let tools = tools::write_all(&request.tools, &mut notes);
    if !tools.is_empty() {
        body.set("tools", tools);
    }
    Encoded { body: Tree::from(body).into_json(), adjustments: notes.finish() }
}

/// Writes the system messages as one prompt, with the fields of the first.
fn write_system(system: &[Message], body: &mut Object) {
    let Some(first) = system.first() else { return };
    for key in [SYSTEM.camel, SYSTEM.snake] {
        body.remove(key);
    }
    let blocks = system.iter().flat_map(|message| &message.content);
    let parts: Vec<Tree> = blocks.filter_map(|block| write::part(Role::System, block)).collect();
    let prompt = own_object(CODEC, &first.extra).with("parts", parts);
    body.set(Spelling::of(&first.extra).key(SYSTEM), prompt);
}
