//! The key of a vendor.

use std::fmt;

/// An API key. `Debug` does not print it.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Returns the key; `None` for a blank text.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        Some(key.trim()).filter(|key| !key.is_empty()).map(|key| Self(key.to_owned()))
    }
}

impl Key {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
