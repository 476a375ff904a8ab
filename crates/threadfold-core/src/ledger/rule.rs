//! One rule: its words, its source and its status.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::message::{InvalidValue, Text};

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// The id. It depends only on the words, so the same words always have the same id.
    pub id: RuleId,
    /// The words as typed, on one line.
    pub text: Text,
    /// Who gave the rule.
    pub source: RuleSource,
    /// Whether the rule is active.
    pub status: RuleStatus,
}

impl Rule {
    /// Whether the rule is active.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self.status {
            RuleStatus::Active => true,
            RuleStatus::Superseded { .. } | RuleStatus::Revoked => false,
        }
    }
}

/// Who gave a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleSource {
    /// The user.
    Message {
        /// The index of the message. In a log, it counts all messages ever appended.
        position: usize,
    },
    /// The application.
    Host,
}

/// Whether a rule is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleStatus {
    /// The rule applies.
    Active,
    /// A later rule replaced it.
    Superseded {
        /// The later rule.
        by: RuleId,
    },
    /// The user or the host revoked it.
    Revoked,
}

/// The id of a rule: sixteen hexadecimal digits that depend only on its words.
///
/// ```
/// use threadfold::ledger::Ledger;
///
/// let mut ledger = Ledger::default();
/// let id = ledger.add("Never touch the lexer.")?;
/// assert_eq!(ledger.add("never touch  the lexer")?, id);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// # Ok::<(), threadfold::message::InvalidValue>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleId(u64);

impl RuleId {
    /// Returns the id for a key: its FNV-1a hash of 64 bits.
    pub(super) fn of(key: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(key.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// Returns the following id, for a rule whose hash another rule already has.
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for RuleId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u64::from_str_radix(text, 16).ok().filter(|_| digits);
        let rule = "16 hexadecimal digits are";
        id.map(Self).ok_or_else(|| InvalidValue::new("the id of a rule", rule, text))
    }
}

impl TryFrom<String> for RuleId {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        text.parse()
    }
}

impl From<RuleId> for String {
    fn from(id: RuleId) -> Self {
        id.to_string()
    }
}
