//! A codec for tests: the crate's own JSON as a dialect, correct or broken in one way.

use std::cell::Cell;

use threadfold::{
    Answer, Request, WireFormat, legality,
    message::{Extra, Json},
    wire::{Adjustment, Change, DecodeOptions, EncodeOptions, Encoded, WireError},
};

/// How the test codec is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    ForgetsFields,
    ForgetsBody,
    AdjustsAlways,
    WritesIllegal,
    WritesNonsense,
    NeverTheSame,
    LosesTexts,
}

/// The crate's own JSON as a dialect. A decoded body is kept unchanged.
#[derive(Debug)]
pub(crate) struct Identity(pub(crate) Fault);

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

impl WireFormat for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn decode_slice(&self, body: &[u8], _: &DecodeOptions) -> Result<Request, WireError> {
        let refused = |reason: String| WireError::NotJson { reason };
        let text = std::str::from_utf8(body).map_err(|error| refused(error.to_string()))?;
        let json = Json::parse(text).map_err(|error| refused(error.to_string()))?;
        let request: Request =
            serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
        let (messages, _) = if self.0 == Fault::WritesIllegal {
            (request.messages.to_vec(), Vec::new())
        } else {
            legality::repair(request.messages.to_vec())
        };
        let extra = match self.0 {
            Fault::ForgetsFields => Extra::default(),
            _ => Extra::new("identity", [("body", json)]),
        };
        Ok(Request { extra, ..Request::new(messages) })
    }

    fn encode(&self, request: &Request, _: &EncodeOptions) -> Encoded {
        let number = COUNT.replace(COUNT.get() + 1);
        let (mut messages, repairs) = match self.0 {
            Fault::WritesIllegal => (request.messages.to_vec(), Vec::new()),
            _ => legality::repair(request.messages.to_vec()),
        };
        let repaired = |repair: legality::Repair| {
            Adjustment::at(repair.message(), Change::Repaired { repair })
        };
        let mut adjustments: Vec<Adjustment> = repairs.into_iter().map(repaired).collect();
        let kept = request.extra.get("identity", "body").cloned();
        if self.0 == Fault::LosesTexts && kept.is_none() {
            for message in &mut messages {
                message.make_mut().content.retain(|block| block.as_text().is_none());
            }
            messages.retain(|message| !message.content.is_empty());
        }
        let bare = Request::new(messages);
        let text = match self.0 {
            Fault::WritesNonsense if kept.is_none() => "5".to_owned(),
            Fault::NeverTheSame => format!(r#"{{"messages":[],"number":{number}}}"#),
            Fault::ForgetsBody => r#"{"messages":[]}"#.to_owned(),
            _ => {
                kept.map_or_else(|| serde_json::to_string(&bare).unwrap(), |json| json.to_string())
            }
        };
        if self.0 == Fault::AdjustsAlways {
            adjustments.push(Adjustment::whole(Change::Merged));
        }
        Encoded { body: Json::parse(&text).unwrap(), adjustments }
    }

    fn decode_response(&self, _: &[u8]) -> Result<Answer, WireError> {
        Err(WireError::NotJson { reason: "there are none".to_owned() })
    }

    fn answer_builder(&self) -> Box<dyn threadfold::wire::AnswerBuilder> {
        threadfold::wire::Dialect::Anthropic.answer_builder()
    }
}
