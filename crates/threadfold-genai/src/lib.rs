#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod failure;
mod lift_anthropic;
mod lift_chat;
mod media;
mod model;
mod notes;
mod params;
mod request;
mod target;
mod turn;

pub use failure::error_from_genai;
pub use model::GenaiModel;
pub use request::{Converted, to_genai};
pub use target::Target;
pub use turn::turn_from_genai;
