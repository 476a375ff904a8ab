//! The parts of a dialect as one value. Every dialect makes one; [`Dialect`](crate::Dialect) calls
//! their functions.

use threadfold_core::message::*;

use crate::{
    asked::CompactionAsked, assembly::*, contract::*, json::*, options::*, stream::AnswerBuilder,
};

/// The codec of a dialect: the functions of its module.
pub(crate) struct Codec {
    pub(crate) name: &'static str,
    pub(crate) read: Read,
    pub(crate) write: fn(&Request, &EncodeOptions) -> Encoded,
    pub(crate) read_answer: Decode,
    pub(crate) builder: fn(Decode) -> Box<dyn AnswerBuilder>,
    pub(crate) compaction: Option<Compaction>,
}

/// Reads the fields of a request body.
type Read = fn(Fields<'_>, &DecodeOptions) -> Result<Request, WireError>;

/// The functions of a dialect whose provider compacts on request. The methods of
/// [`Dialect`](crate::Dialect) that begin with `compaction_` describe them.
pub(crate) struct Compaction {
    pub(crate) request: fn(Request, Option<&str>) -> Request,
    pub(crate) asked: fn(&Request) -> Option<CompactionAsked>,
    pub(crate) answer: fn(&str, &str, Usage) -> Json,
}

impl Codec {
    /// Returns the codec of these functions, with `A` to assemble its streams.
    pub(crate) const fn new<A: Assembly + Default + 'static>(
        name: &'static str,
        read: Read,
        write: fn(&Request, &EncodeOptions) -> Encoded,
        read_answer: Decode,
    ) -> Self {
        Self { name, read, write, read_answer, builder: Builder::<A>::boxed, compaction: None }
    }

    /// Adds the functions for compaction.
    pub(crate) const fn compacting(self, functions: Compaction) -> Self {
        Self { compaction: Some(functions), ..self }
    }
}
