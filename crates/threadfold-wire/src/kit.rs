//! The parts from which dialects are built. Every file of a dialect imports them from here.
//!
//! A dialect is a folder whose `mod.rs` makes a `Codec` of four things: `read::request`, `read::turn`,
//! `write::request` and `stream::Response`. The dialect's differences are an implementation of `Rules`
//! and constants such as `NameRules`, `CacheRules`, `Param` and `Counts`.
//!
//! | part | purpose |
//! |---|---|
//! | `json` | reads JSON field by field without losing any, and writes it with the keys in order |
//! | `extras` | unknown fields and marks, from and to the `extra` of their owner |
//! | `texts` | the kinds of blocks that travel as text |
//! | `notes` | the adjustments; the changes that every codec makes before it writes |
//! | `rules`, `normal` | which blocks a provider takes, and how messages must follow each other |
//! | `pictures` | which pictures a provider takes |
//! | `names` | names and ids that a provider refuses |
//! | `cache` | cache marks |
//! | `params`, `schemas` | parameters and schemas of tools |
//! | `messages` | bodies whose messages have a role and blocks |
//! | `openai` | what both dialects of OpenAI share |
//! | `assembly`, `growing` | answers that come in pieces |
//! | `usage`, `compaction` | counts of tokens; the provider's own compaction |

pub(crate) use crate::{
    assembly::{Assembly, Output, input, provider_error, read_event, unreadable},
    cache::{self, CacheRules, Parts},
    compaction::{BY_GATEWAY, counts, edit},
    contract::{Change, Encoded, Result, WireError},
    dialect::{Codec, Compaction},
    extras::{self, add_rest, own_object, read_item, reopen, wire_fields, without},
    growing::{Growing, Merged},
    json::{self, Fields, Object, Path, Raw, Scanned, Tree},
    messages::{self, ROLE, Reader, SYSTEM},
    names::{self, NameRules, Renamed, is_word, short},
    normal::{
        Ending, Kinds, Thread, begin_with_user, call_id, extra, extra_mut, fit, fit_blocks,
        fit_end, fit_tools, is_call, is_result, loop_has_no_reasoning, merge, merge_neighbours,
        results_first, take_media, with_call_id,
    },
    notes::{self, CONTINUE, LeftOut, Notes},
    openai::{self, By, Content, Contents, Tools, names_model, no_content, write_failure},
    options::{DecodeOptions, EncodeOptions},
    params::{
        Param, Section, does_not_think, is_met, limit, temperature, thinks_manually, write_float,
        write_to_one,
    },
    pictures::{self, Pictures},
    rules::{
        self, FittedSource, Medium, PLAIN, Rules, Sources, accepts_system_after,
        foreign_server_calls, is_made_by, signed_fault,
    },
    schemas::{is_typed, no_parameters, typed_schema},
    stream::{StreamEvent, Taken},
    texts::{blocks, kept_form, recognise, wire_text},
    usage::Counts,
};
pub(crate) use threadfold_core::message::*;
