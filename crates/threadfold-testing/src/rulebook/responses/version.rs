//! What differs between OpenAI's models.

use super::super::openai::version;

/// Whether a model binds reasoning to its prefix.
pub(super) fn binds(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (6, 2))
}
