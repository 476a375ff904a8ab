//! The registers of a run: those of the workspace, and on top those that the run has set.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    limits::Limits,
    report::SavedRegister,
    run_error::RunError,
    words::{QUOTE_CHARACTERS, abridge},
    workspace::Workspace,
};

/// Registers under a run. The workspace is not touched.
#[derive(Debug)]
pub(crate) struct Registers<'a> {
    workspace: &'a Workspace,
    limits: &'a Limits,
    set: BTreeMap<String, String>,
    count: usize,
    bytes: usize,
    saved: u64,
}

impl<'a> Registers<'a> {
    pub(crate) fn new(workspace: &'a Workspace, limits: &'a Limits) -> Self {
        let count = workspace.registers().count();
        let bytes = workspace.registers().map(|(_, text)| text.len()).sum();
        let saved = workspace.saved();
        Self { workspace, limits, set: BTreeMap::new(), count, bytes, saved }
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, RunError> {
        let text = self.find(name);
        text.ok_or_else(|| RunError::UnknownRegister { register: abridge(name, QUOTE_CHARACTERS) })
    }

    /// Sets a register, whether it was set before or not.
    pub(crate) fn set(&mut self, name: &str, text: String) -> Result<(), RunError> {
        let before = self.find(name).map(str::len);
        let count = self.count + usize::from(before.is_none());
        let bytes = self.bytes - before.unwrap_or(0) + text.len();
        let Limits { registers, register_bytes, .. } = *self.limits;
        // What makes the registers smaller is allowed even if they are too many.
        if (count > self.count && count > registers)
            || (bytes > self.bytes && bytes > register_bytes)
        {
            return Err(RunError::RegistersFull { registers, bytes: register_bytes });
        }
        self.set.insert(name.to_owned(), text);
        (self.count, self.bytes) = (count, bytes);
        Ok(())
    }

    /// Keeps the text of an edit that was not carried out in a register of its own.
    pub(crate) fn save(&mut self, text: String) -> Result<SavedRegister, RunError> {
        let mut name = String::new();
        let mut number = self.saved;
        while name.is_empty() || self.find(&name).is_some() {
            // A stored number may be the largest one.
            number = number.wrapping_add(1);
            name.clear();
            // Writing to a string does not fail.
            let _ = write!(name, "_saved_{number}");
        }
        let bytes = text.len();
        self.set(&name, text)?;
        self.saved = number;
        Ok(SavedRegister { name, bytes })
    }

    /// Returns what the run has set, and the number of the last register that it saved.
    pub(crate) fn into_set(self) -> (BTreeMap<String, String>, u64) {
        (self.set, self.saved)
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(String::as_str).or_else(|| self.workspace.register(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_over_the_limit_is_refused_and_a_smaller_one_is_not() {
        let limits = Limits { registers: 1, register_bytes: 3, ..Limits::default() };
        let workspace = Workspace::new();
        let mut registers = Registers::new(&workspace, &limits);
        let full = Err(RunError::RegistersFull { registers: 1, bytes: 3 });
        assert_eq!(registers.set("a", "four".to_owned()), full);
        assert_eq!(registers.set("a", "xyz".to_owned()), Ok(()));
        assert_eq!(registers.set("b", String::new()), full);
        assert_eq!(registers.set("a", "z".to_owned()), Ok(()));
        assert_eq!(registers.text("a"), Ok("z"));
    }

    #[test]
    fn what_is_no_more_than_before_is_set_where_there_is_too_much() {
        let mut workspace = Workspace::new();
        let texts = [("a", "four"), ("b", "six")].map(|(name, text)| (name.into(), text.into()));
        workspace.keep_registers(texts.into(), 0);
        let full = Err(RunError::RegistersFull { registers: 1, bytes: 3 });
        let limits = Limits { registers: 1, register_bytes: 3, ..Limits::default() };
        for (text, expected) in [("4444", Ok(())), ("4", Ok(())), ("55555", full)] {
            let mut registers = Registers::new(&workspace, &limits);
            assert_eq!(registers.set("a", text.to_owned()), expected, "{text}");
        }
    }

    #[test]
    fn the_largest_stored_number_is_followed_by_one_that_is_free() {
        let (limits, mut workspace) = (Limits::default(), Workspace::new());
        workspace.keep_registers([("_saved_0".to_owned(), "x".to_owned())].into(), u64::MAX);
        let saved = Registers::new(&workspace, &limits).save("y".to_owned());
        assert_eq!(saved, Ok(SavedRegister { name: "_saved_1".to_owned(), bytes: 1 }));
    }

    #[test]
    fn saved_registers_pass_over_names_in_use() {
        let limits = Limits::default();
        let workspace = Workspace::new();
        let mut registers = Registers::new(&workspace, &limits);
        assert_eq!(registers.set("_saved_1", "mine".to_owned()), Ok(()));
        let saved = SavedRegister { name: "_saved_2".to_owned(), bytes: 1 };
        assert_eq!(registers.save("x".to_owned()), Ok(saved));
        assert_eq!(registers.text("_saved_1"), Ok("mine"));
    }
}
