//! How deep results may stand in each other.
//!
//! The content of a result is blocks, and a block may be a result again. Everything that walks over
//! blocks goes down with them, and what is stored of them is read by a parser that goes down a
//! limited way. So there is one limit, and every way to a result keeps it.

use super::content::ContentBlock;

/// How many results may stand in each other: one that holds none is 1. No provider takes more than
/// one. A message of so many fits every stored form, which `serde_json` reads to a depth of 128.
pub const MAX_NESTING: usize = 32;

/// Results stand in each other deeper than [`MAX_NESTING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_NESTING} results stand in each other")]
#[non_exhaustive]
pub struct NestingError;

/// Checks that no more than [`MAX_NESTING`] results stand in each other in these blocks.
///
/// ```
/// use threadfold::{ContentBlock, message::{MAX_NESTING, ToolResult, check_nesting}};
///
/// let mut block = ContentBlock::text("done");
/// for _ in 0..MAX_NESTING {
///     block = ToolResult::new("call_1", vec![block]).into();
/// }
/// assert!(check_nesting(&[block.clone()]).is_ok());
///
/// // One more is refused, as an error that the model reads.
/// let refused = ToolResult::new("call_1", vec![block]);
/// assert!(refused.is_error);
/// assert_eq!(refused.content, [ContentBlock::text("more than 32 results stand in each other")]);
/// ```
///
/// # Errors
///
/// [`NestingError`] if there are more.
pub fn check_nesting(content: &[ContentBlock]) -> Result<(), NestingError> {
    check(content, MAX_NESTING)
}

/// As [`check_nesting`], for the content of a result. It goes down no further than is allowed.
pub(super) fn check_nested(content: &[ContentBlock]) -> Result<(), NestingError> {
    check(content, MAX_NESTING - 1)
}

fn check(content: &[ContentBlock], most: usize) -> Result<(), NestingError> {
    for block in content {
        if let ContentBlock::ToolResult(result) = block {
            check(&result.content, most.checked_sub(1).ok_or(NestingError)?)?;
        }
    }
    Ok(())
}
