//! Reading prose: the texts of a message, their speakers, and the facts in them.
//!
//! | file | what it finds |
//! |---|---|
//! | `passage` | the texts of a message, each with its speaker and kind |
//! | `spans`, `class`, `border` | the facts of a text, their classes and borders, and the key by which two are compared |
//! | `word_kinds`, `chunk`, `token`, `shapes` | words, pieces of words, tokens, and how most are excluded |
//! | `word_facts`, `path`, `link`, `symbol`, `number` | facts of one or two words |
//! | `sentence`, `label` | paragraphs, sentences, and the labels before them |
//! | `command`, `failure`, `task`, `quote` | facts of one line |
//! | `words_key`, `named` | the key by which what people say is compared, and the name of who said it |
//! | `section` | the titles of the lists in an addendum |

mod border;
mod chunk;
mod class;
mod command;
mod failure;
mod label;
mod link;
mod named;
mod number;
mod passage;
mod path;
mod quote;
mod section;
mod sentence;
#[doc(hidden)]
pub mod spans;
mod symbol;
mod task;
mod token;
mod word_facts;
mod word_kinds;
mod words_key;

pub(crate) use class::Property;
pub use class::{FactClass, Speaker};

pub(crate) use self::{
    border::is_whole,
    chunk::Trust,
    label::heading,
    passage::{closings, tag_name},
    path::path_value,
    section::{left_out_line, typed_items, without_list},
    sentence::{UNWRAPPED, is_unspaced, spoken_words},
    token::{canonical, hash, is_quotation_mark},
    word_facts::word_facts,
    words_key::without_stress,
};
pub use self::{
    command::commands,
    failure::first_failure,
    named::{named, read_named},
    passage::{Kind, fingerprint, passages, passages_of, plain},
    section::{TASK, TYPED, without_typed},
    sentence::{LONGEST, item, paragraphs, sentences},
    spans::{Span, key, spans},
    token::{Token, Tokens, tokens},
    word_kinds::one_line,
    words_key::{key_by, own_key, words_key},
};
