//! Writing request bodies: the thread is made legal first, and written then.

use super::{
    marks::CODEC,
    normal::{self, Chat},
    params, write,
};
use crate::{
    contract::{EncodeOptions, Encoded},
    json::Tree,
    names,
    notes::{self, CONTINUE},
    openai::names_model,
    rules,
};
use threadfold_core::message::{Message, Request};

/// The most characters that the API takes in the id of a call.
const MAX_ID: usize = 40;

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let end = request.messages.len();
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    if names_model(request, options, CODEC) {
        notes::answer_open_calls(&mut messages, end, &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, false), &mut notes);
    names::shorten_ids(&mut messages, MAX_ID, &mut notes);
    normal::drop_empty_calls(&mut messages, &mut notes);
    let mut body = params::write(request, options, &mut notes);
    let system = rules::system(&Chat, &request.system, &mut notes);
    let thread = rules::thread(&Chat, messages, &mut notes);
    let mut thread = normal::arrange(&thread, &mut notes);
    if names_model(request, options, CODEC) {
        normal::answer_last_call(&mut thread, end, &mut notes);
    }
    if notes::is_emptied(&request.messages, thread.len(), &mut notes) {
        thread.push((end, Message::user(CONTINUE)));
    }
    body.set("messages", write::messages(&system, &thread));
    Encoded { body: Tree::from(body).into_json(), adjustments: notes.finish() }
}
