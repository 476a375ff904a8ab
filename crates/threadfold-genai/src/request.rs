//! Converting a request to genai's types.

use genai::chat::{ChatOptions, ChatRequest};
use threadfold::{
    Request,
    message::InvalidValue,
    wire::{self, Adjustment},
};

use crate::{
    lift_anthropic, lift_chat,
    notes::{Notes, array, object},
    params,
    target::{Dialect, Target},
};

/// A request in genai's types, and the changes that this required.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The messages and tools.
    pub request: ChatRequest,
    /// The parameters.
    pub options: ChatOptions,
    /// The changes: first those of the codec, in the order of the thread, then those of the
    /// conversion to genai's types, which concern the request as a whole.
    pub adjustments: Vec<Adjustment>,
}

/// Returns a request in genai's types.
///
/// The codec of the nearest dialect encodes the request first: Anthropic Messages for that
/// provider, Chat Completions for all others. This repairs the thread, makes ids valid for the
/// provider and puts results after their calls. Then the body is converted to genai's types.
///
/// ```
/// use genai::adapter::AdapterKind;
/// use threadfold::{Message, Request};
/// use threadfold_genai::{Target, to_genai};
///
/// let request = Request::new(vec![Message::user("hi")]).with_system("Be brief.");
/// let converted = to_genai(&request, &Target::new(AdapterKind::OpenAI, "gpt-5"))?;
/// assert_eq!(converted.request.system.as_deref(), Some("Be brief."));
/// assert_eq!(converted.request.messages.len(), 1);
/// assert_eq!(converted.adjustments, []);
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
///
/// # Errors
///
/// [`InvalidValue`] if an input that genai needs as a tree nests deeper than `serde_json` reads
/// (128 levels).
pub fn to_genai(request: &Request, target: &Target) -> Result<Converted, InvalidValue> {
    let options = target.options();
    let anthropic = target.dialect == Dialect::Anthropic;
    let encoded = if anthropic {
        wire::Dialect::Anthropic.encode(request, &options)
    } else {
        wire::Dialect::OpenAiChat.encode(request, &options)
    };
    let mut notes = Notes(encoded.adjustments);
    let mut body = object(encoded.body.to_value()?);
    let messages = array(body.remove("messages"));
    let tools = array(body.remove("tools"));
    let mut options = ChatOptions::default();
    let mut request = if anthropic {
        lift_anthropic::request(body.remove("system"), messages, &mut notes)
    } else {
        lift_chat::request(messages, target.dialect, &mut notes)
    };
    request.tools = params::tools(tools, target.dialect, &mut options, &mut notes);
    params::options(body, target.dialect, &mut options, &mut notes);
    Ok(Converted { request, options, adjustments: notes.0 })
}
