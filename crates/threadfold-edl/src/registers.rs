//! Registers: named texts, which stay in a workspace between runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{error::EditError, limits::Limits, text::shorten};

/// The registers of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registers {
    #[serde(rename = "registers")]
    pub(crate) texts: BTreeMap<String, String>,
    /// The number in the name of the last register that a run created.
    saved: u64,
}

impl Registers {
    pub(crate) fn text(&self, name: &str) -> Result<&str, EditError> {
        let text = self.texts.get(name).map(String::as_str);
        text.ok_or_else(|| EditError::UnknownRegister { register: shorten(name) })
    }

    /// Fills a register. Its old text is lost.
    pub(crate) fn set(
        &mut self,
        name: &str,
        text: String,
        limits: &Limits,
    ) -> Result<(), EditError> {
        let before = self.texts.get(name);
        let bytes: usize = self.texts.values().map(String::len).sum();
        let is_larger = text.len() > before.map_or(0, String::len);
        let more_bytes = bytes - before.map_or(0, String::len) + text.len();
        // A host may lower the limits between runs, so an edit that adds nothing is always allowed.
        if before.is_none() && self.texts.len() >= limits.registers
            || is_larger && more_bytes > limits.register_bytes
        {
            let Limits { registers, register_bytes: bytes, .. } = *limits;
            return Err(EditError::RegistersFull { registers, bytes });
        }
        self.texts.insert(name.to_owned(), text);
        Ok(())
    }

    /// Keeps the text of an edit that was not carried out, in a new register. Returns its name.
    pub(crate) fn save(&mut self, text: String, limits: &Limits) -> Result<String, EditError> {
        let mut number = self.saved;
        let name = loop {
            // A stored workspace may hold the largest number.
            number = number.wrapping_add(1);
            let name = format!("_saved_{number}");
            if !self.texts.contains_key(&name) {
                break name;
            }
        };
        self.set(&name, text, limits)?;
        self.saved = number;
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers<const N: usize>(texts: [(&str, &str); N], saved: u64) -> Registers {
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        Registers { texts, saved }
    }

    #[test]
    fn a_register_over_the_limit_is_refused_and_a_smaller_one_is_not() {
        let limits = Limits { registers: 1, register_bytes: 3, ..Limits::default() };
        let mut registers = Registers::default();
        let mut set = |name: &str, text: &str| registers.set(name, text.to_owned(), &limits);
        let full = Err(EditError::RegistersFull { registers: 1, bytes: 3 });
        assert_eq!(set("a", "four"), full);
        assert_eq!(set("a", "xyz"), Ok(()));
        assert_eq!(set("b", ""), full);
        assert_eq!(set("a", "z"), Ok(()));
        assert_eq!(registers.text("a"), Ok("z"));
    }

    #[test]
    fn an_edit_that_adds_nothing_is_allowed_over_the_limits() {
        let full = Err(EditError::RegistersFull { registers: 1, bytes: 3 });
        let limits = Limits { registers: 1, register_bytes: 3, ..Limits::default() };
        for (text, expected) in [("4444", Ok(())), ("4", Ok(())), ("55555", full)] {
            let mut registers = registers([("a", "four"), ("b", "six")], 0);
            assert_eq!(registers.set("a", text.to_owned(), &limits), expected, "{text}");
        }
    }

    #[test]
    fn the_largest_stored_number_is_followed_by_one_that_is_free() {
        let mut registers = registers([("_saved_0", "x")], u64::MAX);
        let saved = registers.save("y".to_owned(), &Limits::default());
        assert_eq!(saved.as_deref(), Ok("_saved_1"));
    }

    #[test]
    fn saved_registers_pass_over_names_in_use() {
        let mut registers = registers([("_saved_1", "mine")], 0);
        let saved = registers.save("x".to_owned(), &Limits::default());
        assert_eq!((saved.as_deref(), registers.text("_saved_1")), (Ok("_saved_2"), Ok("mine")));
    }
}
