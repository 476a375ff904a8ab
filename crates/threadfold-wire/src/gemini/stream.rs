//! Building an answer of its stream.
//!
//! Every event is a whole response, whose parts are what is new. They are put together to the body
//! of the whole answer, and that is read like any other. The arguments of a call may come in pieces
//! too; see `partial`.

use super::{
    marks::{FUNCTION_CALL, TEXT},
    part::Part,
    partial::{Partial, is_named, is_partial},
    read,
};
use crate::kit::*;

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Response {
    body: Merged,
    candidate: Option<Merged>,
    content: Merged,
    parts: Vec<Piece>,
    /// How many calls have begun.
    calls: usize,
    /// The part that is a call of which more will come.
    open: Option<usize>,
    id: Option<Text>,
    usage: Usage,
    is_complete: bool,
}

/// A part in the making.
#[derive(Debug)]
enum Piece {
    /// A text without fields of its own: more of it may come.
    Text { thought: bool, text: String },
    /// A call of which more may come, or did come.
    Call(Box<Partial>),
    /// Any other part.
    Whole(Json),
}

impl Assembly for Response {
    fn take(&mut self, event: StreamEvent<'_>) -> Result<Vec<Delta>, ModelError> {
        read_event(event, &[], |fields, data| self.read(fields, data))
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn body(&mut self) -> Option<Json> {
        let mut body = self.body.object().filter(|_| self.is_complete).unwrap_or_default();
        if let Some(candidate) = &self.candidate {
            let parts = std::mem::take(&mut self.parts).into_iter().map(Piece::into_tree);
            let content = self.content.object().unwrap_or_default();
            let content = content.with("parts", parts.collect::<Vec<_>>());
            let candidate = candidate.object().unwrap_or_default().with("content", content);
            body.set("candidates", Tree::from_iter([candidate]));
        }
        self.is_complete.then(|| Tree::from(body).into_json())
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.usage)
    }
}

/// One of these is in every response.
const KNOWN: [&str; 5] =
    ["candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"];

impl Response {
    fn read(&mut self, fields: Fields<'_>, data: &str) -> Result<Vec<Delta>, ModelError> {
        if fields.get("error").is_some_and(|error| error.get() != "null") {
            return Err(provider_error(data));
        }
        if !KNOWN.iter().any(|key| fields.get(key).is_some()) {
            return Ok(Vec::new());
        }
        self.response(fields)
    }

    fn response(&mut self, mut fields: Fields<'_>) -> Result<Vec<Delta>, ModelError> {
        let candidates = fields.take("candidates").filter(|raw| raw.get() != "null");
        self.usage =
            fields.get("usageMetadata").and_then(|raw| read::USAGE.read(raw)).unwrap_or(self.usage);
        self.is_complete |= read::is_blocked(&fields);
        // The ids of calls are made of it, so it stays as it was when the first call began.
        let id = fields.text("responseId");
        if self.id.is_none() && self.calls == 0 && id.is_some() {
            self.id = id;
        } else {
            fields.take("responseId");
        }
        self.body.merge(&fields);
        let Some(raw) = candidates else { return Ok(Vec::new()) };
        let all = raw.items().ok_or_else(|| unreadable("the candidates are no list"))?;
        let first = all.into_iter().find(|candidate| read::is_first(*candidate));
        first.map_or_else(|| Ok(Vec::new()), |candidate| self.candidate(candidate))
    }

    fn candidate(&mut self, raw: Raw<'_>) -> Result<Vec<Delta>, ModelError> {
        let Some(mut fields) = Fields::of(raw) else {
            return Err(unreadable("a candidate is no object"));
        };
        let content = fields.take("content").and_then(Fields::of);
        let reason = fields.text("finishReason");
        self.is_complete |=
            reason.is_some_and(|reason| !["", "FINISH_REASON_UNSPECIFIED"].contains(&&*reason));
        self.candidate.get_or_insert_default().merge(&fields);
        let mut content = content.unwrap_or_default();
        let parts = content.take("parts").and_then(Raw::items).unwrap_or_default();
        self.content.merge(&content);
        let mut deltas = Vec::new();
        for raw in parts {
            deltas.extend(self.part(raw)?);
        }
        if self.is_complete {
            deltas.extend(self.close());
        }
        Ok(deltas)
    }

    /// Takes a part in, and returns what it adds.
    fn part(&mut self, raw: Raw<'_>) -> Result<Vec<Delta>, ModelError> {
        let Some(part) = Part::read(raw) else {
            self.parts.push(Piece::Whole(raw.json()));
            return Ok(Vec::new());
        };
        if part.data == TEXT {
            return Ok(self.text(raw, &part).into_iter().collect());
        }
        if part.data == FUNCTION_CALL {
            let inner = part.inner().unwrap_or_default();
            if !is_named(&inner) && self.open.is_some() {
                return self.more(&part);
            }
            let before = self.close();
            let call = match is_named(&inner) && is_partial(&inner) {
                true => self.begin(raw, &part)?,
                false => self.call(raw, part),
            };
            return Ok(before.into_iter().chain(call).collect());
        }
        self.parts.push(Piece::Whole(raw.json()));
        Ok(Vec::new())
    }

    /// Takes the first piece of a call.
    fn begin(&mut self, raw: Raw<'_>, part: &Part<'_>) -> Result<Vec<Delta>, ModelError> {
        let id = self.id.clone().unwrap_or_default();
        let made_up = || read::made_up_id(&id, self.calls);
        let Some(call) = Part::read(raw).and_then(|part| part.call(made_up)) else {
            self.parts.push(Piece::Whole(raw.json()));
            return Ok(Vec::new());
        };
        self.calls += 1;
        self.open = Some(self.parts.len());
        self.parts.push(Piece::Call(Box::new(Partial::new(call.id.clone()))));
        let mut deltas = vec![Delta::ToolUse { id: call.id, name: call.name }];
        deltas.extend(self.more(part)?);
        Ok(deltas)
    }

    /// Takes a piece of the open call.
    fn more(&mut self, part: &Part<'_>) -> Result<Vec<Delta>, ModelError> {
        let open = self.open.and_then(|open| self.parts.get_mut(open));
        let Some(Piece::Call(call)) = open else { return Ok(Vec::new()) };
        let continues = call.add(part).map_err(unreadable)?;
        Ok(if continues { Vec::new() } else { self.close().into_iter().collect() })
    }

    /// Ends the open call, if there is one. Its input is reported in one piece, because what comes in
    /// pieces is no text of JSON.
    fn close(&mut self) -> Option<Delta> {
        let Some(Piece::Call(call)) = self.parts.get(self.open.take()?) else { return None };
        let input = Text::from(call.args().as_str());
        Some(Delta::ToolInput { id: call.id.clone(), text: input })
    }

    fn text(&mut self, raw: Raw<'_>, part: &Part<'_>) -> Option<Delta> {
        let said = part.value.text();
        let thought = part.rest.get("thought").is_some_and(|raw| raw.get() == "true");
        let plain = part.rest.rest().all(|(key, _)| key == "thought" && thought);
        match (self.parts.last_mut(), &said) {
            (_, Some(said)) if plain && said.is_empty() => {}
            (Some(Piece::Text { thought: before, text }), Some(said))
                if plain && *before == thought =>
            {
                text.push_str(said);
            }
            (_, Some(said)) if plain => {
                self.parts.push(Piece::Text { thought, text: said.to_string() });
            }
            _ => self.parts.push(Piece::Whole(raw.json())),
        }
        let text = said.filter(|said| !said.is_empty())?;
        Some(if thought { Delta::Thinking { text } } else { Delta::Text { text } })
    }

    /// Takes a call that came whole.
    fn call(&mut self, raw: Raw<'_>, part: Part<'_>) -> Vec<Delta> {
        self.parts.push(Piece::Whole(raw.json()));
        let id = self.id.clone().unwrap_or_default();
        let Some(call) = part.call(|| read::made_up_id(&id, self.calls)) else {
            return Vec::new();
        };
        self.calls += 1;
        let input = Text::from(call.input.as_str());
        vec![
            Delta::ToolUse { id: call.id.clone(), name: call.name },
            Delta::ToolInput { id: call.id, text: input },
        ]
    }
}

impl Piece {
    fn into_tree(self) -> Tree {
        match self {
            Self::Text { thought, text } => {
                let mut object = Object::default().with("text", text);
                object.set_some("thought", thought.then_some(true));
                object.into()
            }
            Self::Call(call) => call.into_tree(),
            Self::Whole(json) => json.into(),
        }
    }
}
