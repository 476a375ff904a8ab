//! The classes and speakers of facts, and what each finder of facts calls.

pub(crate) use threadfold_core::retention::Property;
pub use threadfold_core::retention::{FactClass, Speaker};

/// A callback that receives each fact that is found, with its class.
pub(crate) type Note<'n> = &'n mut (dyn FnMut(FactClass, &str) + 'n);
