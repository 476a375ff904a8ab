//! The parts from which dialects are built. Every file of a dialect imports them from here.
//!
//! A dialect is a folder whose `mod.rs` makes a `Codec` of four things: `read::request` and
//! `read::answer`, which get the fields of a body, `write::request`, and `stream::Response`, which
//! assembles the body of an answer. The dialect's differences are an implementation of `Rules`,
//! which changes blocks in place or removes them, and constants such as `NameRules`, `CacheRules`,
//! `Param` and `Counts`.
//!
//! | part | purpose |
//! |---|---|
//! | `json` | reads JSON field by field without losing any, and writes it with the keys in order |
//! | `extras` | unknown fields and marks, from and to the `extra` of their owner |
//! | `mark` | the names of marks |
//! | `texts` | the kinds of blocks that travel as text |
//! | `notes` | the adjustments; the changes that every codec makes before it writes |
//! | `rules`, `normal` | which blocks a provider and its model accept, and how messages must follow each other |
//! | `pictures` | which pictures a provider accepts |
//! | `names` | names and ids that a provider refuses |
//! | `cache` | cache marks |
//! | `params`, `schemas` | parameters and schemas of tools |
//! | `messages` | bodies whose messages have a role and blocks |
//! | `openai` | the parts that both dialects of OpenAI share |
//! | `assembly`, `growing` | answers that come in pieces |
//! | `usage`, `compaction` | counts of tokens; the provider's own compaction |

pub(crate) use crate::{
    asked::*, assembly::*, cache, cache::CacheRules, classify::error_within, codec::*,
    compaction::*, contract::*, extras, extras::*, growing::*, json, json::*, mark, messages,
    messages::*, names, names::*, normal::*, notes, notes::*, openai, openai::*, options::*,
    params::*, pictures, pictures::FittedSource, pictures::Pictures, rules, rules::*, schemas::*,
    stream::*, texts::*, usage::*,
};
pub(crate) use threadfold_core::message::*;
