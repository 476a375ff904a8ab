//! OpenAI Chat Completions.

mod answers;
mod calls;
mod decode;
mod draft;
mod encode;
mod ids;
mod marks;
mod params;
mod read_content;
mod response;
mod results;
mod tools;
mod write_content;

use self::marks::CODEC;
use super::contract::{DecodeOptions, EncodeOptions, Encoded, WireError, WireFormat};
use crate::message::{Request, Turn};

/// The codec of OpenAI Chat Completions (`POST /v1/chat/completions`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenAiChat;

impl WireFormat for OpenAiChat {
    fn name(&self) -> &'static str {
        CODEC
    }

    fn decode_slice(&self, body: &[u8], options: &DecodeOptions) -> Result<Request, WireError> {
        decode::request(body, options)
    }

    fn encode(&self, request: &Request, options: &EncodeOptions) -> Encoded {
        encode::request(request, options)
    }

    fn decode_response(&self, body: &[u8]) -> Result<Turn, WireError> {
        response::response(body)
    }
}
