//! One rule: its words, who gave it, and whether it holds.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::message::{InvalidValue, Text};

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, the same wherever and whenever the same words are read.
    pub id: RuleId,
    /// The words, as they were typed, on one line.
    pub text: Text,
    /// Who gave it.
    pub source: RuleSource,
    /// Whether it holds.
    pub status: RuleStatus,
}

impl Rule {
    /// Whether it holds.
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
    /// The user, in this message. In a log, messages are counted as they came.
    Message {
        /// Which message.
        position: usize,
    },
    /// The application.
    Host,
}

/// Whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleStatus {
    /// It holds.
    Active,
    /// A later rule is in its place.
    Superseded {
        /// The later one.
        by: RuleId,
    },
    /// It was taken back.
    Revoked,
}

/// The name of a rule: sixteen hexadecimal digits that depend on nothing but its words.
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
    /// The name of the rule with this key (FNV-1a, 64 bits).
    pub(super) fn of(key: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(key.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// The name behind this one, where this one is taken by other words.
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
