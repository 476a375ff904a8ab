//! Files and registers in memory: what scripts work on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::path::{EmptyPath, FilePath};

/// Files by path, and registers by name.
///
/// A workspace is plain data: it can be cloned, compared, stored and loaded. Registers stay between
/// runs, so a later script can use what an earlier one cut or could not apply.
///
/// ```
/// use threadfold::edl::Workspace;
///
/// let mut workspace = Workspace::new();
/// workspace.insert("/summary.md", "# Summary\n")?;
/// assert_eq!(workspace.text("//summary.md"), Some("# Summary\n"));
/// # Ok::<(), threadfold::edl::EmptyPath>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    files: BTreeMap<FilePath, File>,
    registers: BTreeMap<String, String>,
    /// How many writes there have been, which makes every version unique.
    writes: u64,
    /// The number of the last register that was saved by a run.
    saved: u64,
}

/// A file of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    text: String,
    version: u64,
}

impl File {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The size of the text in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// A number that is another after every write, also if the file was removed in between.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl Workspace {
    /// Returns a workspace without files and registers.
    ///
    /// ```
    /// assert_eq!(threadfold::edl::Workspace::new().files().count(), 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a file, and returns the text that it had before.
    ///
    /// # Errors
    ///
    /// [`EmptyPath`] if the path names no file.
    ///
    /// ```
    /// let mut workspace = threadfold::edl::Workspace::new();
    /// assert_eq!(workspace.insert("a", "one")?, None);
    /// assert_eq!(workspace.insert("./a", "two")?, Some("one".to_owned()));
    /// # Ok::<(), threadfold::edl::EmptyPath>(())
    /// ```
    pub fn insert(
        &mut self,
        path: &str,
        text: impl Into<String>,
    ) -> Result<Option<String>, EmptyPath> {
        Ok(self.write(path.parse()?, text.into()))
    }

    /// Removes a file and returns its text, or `None` if there is no such file.
    ///
    /// ```
    /// let mut workspace = threadfold::edl::Workspace::new();
    /// workspace.insert("a", "one")?;
    /// assert_eq!(workspace.remove("a"), Some("one".to_owned()));
    /// assert_eq!(workspace.remove("a"), None);
    /// # Ok::<(), threadfold::edl::EmptyPath>(())
    /// ```
    pub fn remove(&mut self, path: &str) -> Option<String> {
        let path: FilePath = path.parse().ok()?;
        self.files.remove(&path).map(|file| file.text)
    }

    /// Returns a file, whatever the spelling of its path.
    ///
    /// ```
    /// let mut workspace = threadfold::edl::Workspace::new();
    /// workspace.insert("a", "one")?;
    /// assert_eq!(workspace.file("b/../a").map(|file| file.size()), Some(3));
    /// # Ok::<(), threadfold::edl::EmptyPath>(())
    /// ```
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        let path: FilePath = path.parse().ok()?;
        self.files.get(&path)
    }

    /// Returns the text of a file, whatever the spelling of its path.
    ///
    /// ```
    /// assert_eq!(threadfold::edl::Workspace::new().text("a"), None);
    /// ```
    pub fn text(&self, path: &str) -> Option<&str> {
        self.file(path).map(File::text)
    }

    /// The files, in the order of their paths.
    ///
    /// ```
    /// use threadfold::edl::Workspace;
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("src/b.rs", "fn b() {}")?;
    /// workspace.insert("./src/a.rs", "fn a() {}")?;
    /// let files: Vec<_> = workspace.files().map(|(path, file)| (path.as_str(), file.size())).collect();
    /// assert_eq!(files, [("src/a.rs", 9), ("src/b.rs", 9)]);
    /// # Ok::<(), threadfold::edl::EmptyPath>(())
    /// ```
    pub fn files(&self) -> impl Iterator<Item = (&FilePath, &File)> {
        self.files.iter()
    }

    /// Returns the text of a register.
    ///
    /// ```
    /// use threadfold::edl::{Script, Workspace};
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("a", "one two")?;
    /// Script::parse("file a select /one / cut first")?.run(&mut workspace);
    /// assert_eq!(workspace.register("first"), Some("one "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register(&self, name: &str) -> Option<&str> {
        self.registers.get(name).map(String::as_str)
    }

    /// The registers, in the order of their names.
    ///
    /// ```
    /// use threadfold::edl::{Script, Workspace};
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("a", "one two")?;
    /// Script::parse("file a select /two/ cut second\nselect /one / cut first")?.run(&mut workspace);
    /// let registers: Vec<(&str, &str)> = workspace.registers().collect();
    /// assert_eq!(registers, [("first", "one "), ("second", "two")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn registers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.registers.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Removes all registers.
    ///
    /// ```
    /// let mut workspace = threadfold::edl::Workspace::new();
    /// workspace.clear_registers();
    /// assert_eq!(workspace.registers().count(), 0);
    /// ```
    pub fn clear_registers(&mut self) {
        self.registers.clear();
    }

    pub(crate) fn at(&self, path: &FilePath) -> Option<&File> {
        self.files.get(path)
    }

    pub(crate) fn saved(&self) -> u64 {
        self.saved
    }

    pub(crate) fn write(&mut self, path: FilePath, text: String) -> Option<String> {
        // A stored workspace may hold any number; every version still differs from the one before.
        self.writes = self.writes.wrapping_add(1);
        let file = File { text, version: self.writes };
        self.files.insert(path, file).map(|before| before.text)
    }

    pub(crate) fn keep_registers(&mut self, registers: BTreeMap<String, String>, saved: u64) {
        self.registers.extend(registers);
        self.saved = saved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_has_a_version_of_its_own() {
        let mut workspace = Workspace::new();
        let mut versions = Vec::new();
        for _ in 0..3 {
            workspace.remove("a");
            workspace.insert("a", "x").expect("a path");
            versions.push(workspace.file("a").map(File::version));
        }
        assert_eq!(versions, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn a_stored_counter_of_any_size_counts_on() {
        let stored =
            format!(r#"{{"files":{{}},"registers":{{}},"writes":{0},"saved":{0}}}"#, u64::MAX);
        let mut workspace: Workspace = serde_json::from_str(&stored).expect("plain data");
        workspace.insert("a", "one").expect("a path");
        workspace.insert("b", "two").expect("a path");
        let version = |path| workspace.file(path).map(File::version);
        assert_ne!(version("a"), version("b"));
    }

    #[test]
    fn files_are_listed_by_path_and_registers_by_name() {
        let mut workspace = Workspace::new();
        for (path, text) in [("b", "2"), ("c/../a", "1")] {
            workspace.insert(path, text).expect("a path");
        }
        let registers = [("r", "x"), ("q", "y")].map(|(name, text)| (name.into(), text.into()));
        workspace.keep_registers(registers.into(), 2);
        let files = workspace.files().map(|(path, file)| (path.as_str(), file.text()));
        assert_eq!(files.collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(workspace.registers().collect::<Vec<_>>(), [("q", "y"), ("r", "x")]);
        let removed = ["/b", "./a", "a"].map(|path| workspace.remove(path));
        assert_eq!(removed, [None, Some("1".to_owned()), None]);
        workspace.clear_registers();
        assert_eq!((workspace.registers().count(), workspace.register("r")), (0, None));
        assert_eq!((workspace.text("b"), workspace.saved()), (Some("2"), 2));
    }

    #[test]
    fn a_stored_workspace_comes_back_as_it_was() {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "né").expect("a path");
        workspace.keep_registers(BTreeMap::from([("r".to_owned(), "x".to_owned())]), 2);
        let stored = serde_json::to_string(&workspace).expect("plain data");
        assert_eq!(serde_json::from_str::<Workspace>(&stored).ok(), Some(workspace));
    }
}
