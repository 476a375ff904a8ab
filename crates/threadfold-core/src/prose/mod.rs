//! Reading prose: what messages say, by whom, and which facts are in it.
//!
//! | file | what |
//! |---|---|
//! | `passage` | the texts of a message, who says each, and as what |
//! | `spans`, `class`, `border` | the facts of a text: their kinds, how two are compared, and what is a whole one |
//! | `scan`, `chunk`, `token` | words, pieces of words, and tokens |
//! | `words`, `path`, `link`, `symbol`, `number` | facts of one word or two |
//! | `demand`, `wish` | sentences, and those that demand something |
//! | `command`, `failure`, `task`, `quote` | facts of a line |
//! | `section` | the titles under which an addendum lists facts |

mod border;
mod chunk;
mod class;
mod command;
mod demand;
mod failure;
mod link;
mod number;
mod passage;
mod path;
mod quote;
mod scan;
mod section;
#[doc(hidden)]
pub mod spans;
mod symbol;
mod task;
mod token;
mod wish;
mod words;

pub use class::FactClass;
pub use passage::Speaker;

pub(crate) use self::{
    border::is_whole,
    chunk::Trust,
    path::named as named_path,
    section::title,
    token::canonical,
    wish::{is_teller, spoken},
    words::words,
};
pub use self::{
    demand::{has_demand, may_demand, paragraphs, sentences},
    failure::first_failure,
    passage::{Kind, fingerprint, passages, passages_of, plain},
    scan::one_line,
    spans::{Span, key, spans},
    token::{Token, Tokens, tokens},
};
