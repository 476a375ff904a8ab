//! Computes the value of a whole tree.

use crate::parser::{Operator, Tree};

/// Why a tree has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// A division by zero.
    DivisionByZero,
    /// The value is larger than a number can be.
    TooLarge,
}

/// Returns the value of a tree.
///
/// # Errors
///
/// - [`EvalError::DivisionByZero`] for a division by zero.
/// - [`EvalError::TooLarge`] if an intermediate value is not finite.
pub fn value(tree: &Tree) -> Result<f64, EvalError> {
    let value = match tree {
        Tree::Number(number) => *number,
        Tree::Negative(tree) => -value(tree)?,
        Tree::Binary(left, operator, right) => {
            let (left, right) = (value(left)?, value(right)?);
            match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide if right == 0.0 => return Err(EvalError::DivisionByZero),
                Operator::Divide => left / right,
            }
        }
    };
    if value.is_finite() { Ok(value) } else { Err(EvalError::TooLarge) }
}
