#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod failure;
mod from_genai;
mod lift_anthropic;
mod lift_chat;
mod media;
mod model;
mod notes;
mod params;
mod request;
mod target;

pub use failure::error_from_genai;
pub use from_genai::answer_from_genai;
pub use model::GenaiModel;
pub use request::{Converted, to_genai};
pub use target::Target;
