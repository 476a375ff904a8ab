//! Reading prose: the texts of a message, their speakers, and the facts in them.
//!
//! | file | what it finds |
//! |---|---|
//! | `passage` | the texts of a message, each with its speaker and kind |
//! | `spans`, `class`, `border` | the facts of a text, their classes and borders, and the key by which two are compared |
//! | `word_kinds`, `chunk`, `token` | words, pieces of words, and tokens |
//! | `word_facts`, `path`, `link`, `symbol`, `number` | facts of one or two words |
//! | `demand`, `demand_words` | sentences, and which of them demand something |
//! | `quantity`, `quantity_digits`, `quantity_words` | numbers, dates and times of day, compared by value |
//! | `digit_groups`, `quantity_date`, `quantity_unit` | groups of digits, the days and times in them, and the units beside them |
//! | `command`, `failure`, `task`, `quote` | facts of one line |
//! | `subject`, `subject_reader`, `subject_clause`, `subject_words`, `stem`, `value` | the subject of a statement, and the values that it gives |
//! | `subject_replaces`, `subject_contrast` | whether a later statement replaces an earlier one, or both are valid |
//! | `definition` | statements that define a thing in words |
//! | `section` | the titles of the lists in an addendum |

mod border;
mod chunk;
mod class;
mod command;
mod definition;
mod demand;
mod demand_words;
mod digit_groups;
mod failure;
mod label;
mod link;
mod number;
mod passage;
mod path;
mod quantity;
mod quantity_date;
mod quantity_digits;
mod quantity_unit;
mod quantity_words;
mod quote;
mod section;
#[doc(hidden)]
pub mod spans;
mod stem;
mod subject;
mod subject_clause;
mod subject_contrast;
mod subject_reader;
mod subject_replaces;
mod subject_words;
mod symbol;
mod task;
mod token;
mod value;
mod word_facts;
mod word_kinds;

pub(crate) use class::Property;
pub use class::{FactClass, Speaker};

pub(crate) use self::{
    border::is_whole,
    chunk::Trust,
    demand::{Paragraph, marked_paragraphs},
    demand_words::{is_narrator, spoken_words},
    label::heading,
    passage::rough_passages,
    path::path_value,
    quantity::{Day, Number, Quantity, Spelled, Unit},
    quantity_digits::{Wanted, quantities},
    quantity_words::word_quantities,
    section::{BULLET, CHANGED, TypedItem, UNLABELLED, typed_items},
    stem::is_unspaced,
    subject_words::{
        asks_in_any_language, has_wish, is_act, is_calendar, is_common, is_number,
        orders_in_any_language, refers_back,
    },
    token::{canonical, is_quotation_mark},
    word_facts::word_facts,
};
pub use self::{
    command::commands,
    demand::{demands, has_demand, is_question, item, may_demand, paragraphs, sentences},
    failure::first_failure,
    label::{label, without_emphasis},
    passage::{Kind, fingerprint, passages, passages_of, plain},
    section::{TYPED, without_typed},
    spans::{Span, key, spans},
    subject::Subject,
    token::{Token, Tokens, tokens},
    word_kinds::one_line,
};
