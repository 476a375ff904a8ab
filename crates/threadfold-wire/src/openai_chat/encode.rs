//! Writing request bodies, run by run.

use super::{
    answers,
    marks::{CODEC, marked, wire_fields},
    params, results,
    write_content::{content, piece},
};
use crate::{
    contract::{EncodeOptions, Encoded},
    ids::Ids,
    names,
    notes::{self, CONTINUE, Notes},
    openai::names_model,
    tree::{Object, Tree},
};
use threadfold_core::message::{Message, Request, Role};

/// The most characters that the API takes in the id of a call.
const MAX_ID: usize = 40;

/// Returns the body of a request.
pub(super) fn request(request: &Request, options: &EncodeOptions) -> Encoded {
    let (mut messages, mut notes) = notes::prepare(&request.messages, CODEC);
    if names_model(request, options, CODEC) {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = &*names::legal(request, &mut messages, (&names::TOOLS, false), &mut notes);
    let ids = Ids::new(&messages, MAX_ID);
    let mut body = params::write(request, options, &mut notes);
    let mut written = Vec::new();
    for message in &request.system {
        written.extend(system(message, &mut notes));
    }
    let before = written.len();
    let mut deprecated = None;
    for run in messages.chunk_by(|(_, before), (_, after)| before.role == after.role) {
        match run.first().map_or(Role::System, |(_, message)| message.role) {
            Role::System => {
                for (index, message) in run {
                    notes.turn_to(*index);
                    written.extend(system(message, &mut notes));
                }
            }
            Role::User => {
                written.extend(results::write(run, deprecated.take(), &ids, &mut notes));
            }
            Role::Assistant => {
                let (answers, call) = answers::write(run, &ids, &mut notes);
                written.extend(answers.into_iter().map(Tree::from));
                deprecated = call;
            }
        }
    }
    if notes::is_emptied(&request.messages, written.len() - before, &mut notes) {
        written.push(Object::default().with("role", "user").with("content", CONTINUE).into());
    }
    body.set("messages", written);
    Encoded { body: Tree::from(body).into_json(), adjustments: notes.finish() }
}

/// Returns a system message; `None` if nothing of it has a form, which is noted.
fn system(message: &Message, notes: &mut Notes) -> Option<Tree> {
    let fields = wire_fields(&message.extra, notes);
    let pieces =
        message.content.iter().filter_map(|block| piece(Role::System, block, notes)).collect();
    let form = marked(&message.extra, "~content");
    let Some(content) = content(pieces, form.as_deref()) else {
        notes.drop_block("system message", "it has no content");
        return None;
    };
    let developer = marked(&message.extra, "~role").is_some_and(|role| role == "developer");
    let role = if developer { "developer" } else { "system" };
    Some(fields.with("role", role).with("content", content).into())
}
