//! Assembling an answer from its stream.
//!
//! Every event is a whole response whose parts are new. They are assembled to the body of the whole
//! answer, which is then read like any other. The arguments of a call may also arrive in pieces;
//! see `partial`.

use super::{part::Part, partial::*, read};
use crate::kit::*;

/// An answer that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    body: Merged,
    candidate: Option<Merged>,
    content: Merged,
    parts: Vec<Growing>,
    /// Whether the last part is a thought, if it is a text without other fields, to which more text
    /// may be added; else `None`.
    grows: Option<bool>,
    /// The number of calls so far.
    calls: usize,
    /// The call that is not complete.
    open: Option<Partial>,
    id: Option<Text>,
}

impl Assembly for Response {
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        read_event((name, data), &[], |fields, _| self.read(fields, out))
    }

    fn body(&mut self, is_complete: bool) -> Option<Json> {
        self.close(&mut Output::default()).ok()?;
        let mut body = self.body.object();
        if let Some(candidate) = &self.candidate {
            let parts = self.parts.iter().map(Growing::tree).collect::<Vec<_>>();
            let content = self.content.object().with("parts", parts);
            let candidate = candidate.object().with("content", content);
            body.set("candidates", Tree::from_iter([candidate]));
        }
        is_complete.then(|| body.into_json())
    }
}

/// Every response has one of these.
const KNOWN: [&str; 5] =
    ["candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"];

impl Response {
    fn read(&mut self, mut fields: Fields<'_>, out: &mut Output) -> Taken {
        if !KNOWN.iter().any(|key| fields.get(key).is_some()) {
            return Ok(());
        }
        let candidates = fields.take_value("candidates");
        out.usage = fields.get("usageMetadata").and_then(|raw| read::USAGE.read(raw));
        out.is_complete = read::is_blocked(&fields);
        // Generated call ids contain this id, so it must not change after the first call.
        let id = fields.text("responseId");
        if self.id.is_none() && self.calls == 0 && id.is_some() {
            self.id = id;
        } else {
            fields.take("responseId");
        }
        self.body.merge(&fields);
        let Some(raw) = candidates else { return Ok(()) };
        let all = raw.items().ok_or_else(|| unreadable("the candidates are no list"))?;
        let first = all.into_iter().find(|candidate| read::is_first(*candidate));
        first.map_or(Ok(()), |candidate| self.candidate(candidate, out))
    }

    fn candidate(&mut self, raw: Raw<'_>, out: &mut Output) -> Taken {
        let fields = Fields::of(raw);
        let mut fields = fields.ok_or_else(|| unreadable("a candidate is no object"))?;
        let mut content = fields.take("content").and_then(Fields::of).unwrap_or_default();
        let reason = fields.text("finishReason");
        out.is_complete |=
            reason.is_some_and(|reason| !["", "FINISH_REASON_UNSPECIFIED"].contains(&&*reason));
        self.candidate.get_or_insert_default().merge(&fields);
        let parts = content.take("parts").and_then(Raw::items).unwrap_or_default();
        self.content.merge(&content);
        for raw in parts {
            self.part(raw, out)?;
        }
        if out.is_complete { self.close(out) } else { Ok(()) }
    }

    fn part(&mut self, raw: Raw<'_>, out: &mut Output) -> Taken {
        let part = match Part::read(raw) {
            Some(part) if part.data == "functionCall" => part,
            Some(part) if part.data == "text" => {
                self.text(raw, &part, out);
                return Ok(());
            }
            Some(_) | None => {
                self.push(Growing::Whole(raw.json()));
                return Ok(());
            }
        };
        let inner = part.inner().unwrap_or_default();
        if !is_named(&inner) && self.open.is_some() {
            return self.more(&part, out);
        }
        self.close(out)?;
        self.call(raw, part, is_named(&inner) && is_partial(&inner), out)
    }

    /// Takes a whole call, or the first piece of one.
    fn call(&mut self, raw: Raw<'_>, part: Part<'_>, is_partial: bool, out: &mut Output) -> Taken {
        let id = self.id.as_deref().unwrap_or_default();
        let call = part.clone().call(|| read::made_up_id(id, self.calls));
        if let Some(call) = &call {
            self.calls += 1;
            out.call(&call.id, call.name.clone());
        }
        match call {
            Some(ToolUse { id, .. }) if is_partial => {
                self.open = Some(Partial { place: self.parts.len(), id, part: Growing::Nothing });
                self.push(Growing::Nothing);
                return self.more(&part, out);
            }
            Some(call) => out.input(&call.id, call.input.as_str().into()),
            None => {}
        }
        self.push(Growing::Whole(raw.json()));
        Ok(())
    }

    /// Adds a part to which no text is added.
    fn push(&mut self, part: Growing) {
        self.grows = None;
        self.parts.push(part);
    }

    /// Takes a piece of the open call.
    fn more(&mut self, part: &Part<'_>, out: &mut Output) -> Taken {
        let Some(call) = &mut self.open else { return Ok(()) };
        if call.add(part).map_err(unreadable)? { Ok(()) } else { self.close(out) }
    }

    /// Ends the open call, if there is one. Its input is reported as one piece, because the pieces
    /// of arguments are not pieces of JSON text.
    fn close(&mut self, out: &mut Output) -> Taken {
        let Some(mut call) = self.open.take() else { return Ok(()) };
        let args = call.args().map_err(unreadable)?.tree().into_json();
        out.input(&call.id, args.as_str().into());
        if let Some(part) = self.parts.get_mut(call.place) {
            *part = call.part;
        }
        Ok(())
    }

    fn text(&mut self, raw: Raw<'_>, part: &Part<'_>, out: &mut Output) {
        let said = part.value.text();
        let thought = part.rest.get("thought").is_some_and(|raw| raw.get() == "true");
        let plain = part.rest.rest().all(|(key, _)| key == "thought" && thought);
        match &said {
            Some(said) if plain && said.is_empty() => {}
            Some(said) if plain => {
                if self.grows != Some(thought) {
                    self.grows = Some(thought);
                    self.parts.push(Growing::Object(Merged::of(&part.rest)));
                }
                if let Some(Growing::Object(last)) = self.parts.last_mut() {
                    last.grow("text", said);
                }
            }
            Some(_) | None => self.push(Growing::Whole(raw.json())),
        }
        let text = said.unwrap_or_default();
        if thought { out.thinking(text) } else { out.text(text) }
    }
}
