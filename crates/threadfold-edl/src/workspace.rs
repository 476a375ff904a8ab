//! The files and registers in memory that scripts read and change.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{error::EditError, registers::Registers};

/// Files by path, and registers by name.
///
/// Paths are normalized: `/a/./b`, `/a//b` and `/a/c/../b` name one file, `/a` and `a` name two. A
/// workspace is plain data that can be cloned, compared and stored. Registers stay between runs, so
/// that a later script can use a text that an earlier one cut or could not insert.
///
/// ```
/// use threadfold_edl::Workspace;
///
/// let mut workspace = Workspace::new();
/// workspace.insert("/summary.md", "# Summary\n")?;
/// assert_eq!(workspace.text("//summary.md"), Some("# Summary\n"));
/// # Ok::<(), threadfold_edl::EditError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    #[serde(deserialize_with = "with_normal_paths")]
    pub(crate) files: BTreeMap<String, File>,
    #[serde(flatten)]
    pub(crate) registers: Registers,
    /// The number of writes so far. It is the source of the files' versions.
    writes: u64,
}

/// A file of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) text: String,
    version: u64,
}

impl Workspace {
    /// Returns a workspace without files and registers.
    ///
    /// ```
    /// assert_eq!(threadfold_edl::Workspace::new().files().count(), 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a file and returns its old text.
    ///
    /// # Errors
    ///
    /// [`EditError::EmptyPath`] if the path names no file.
    ///
    /// ```
    /// let mut workspace = threadfold_edl::Workspace::new();
    /// assert_eq!(workspace.insert("a", "one")?, None);
    /// assert_eq!(workspace.insert("./a", "two")?, Some("one".to_owned()));
    /// # Ok::<(), threadfold_edl::EditError>(())
    /// ```
    pub fn insert(
        &mut self,
        path: &str,
        text: impl Into<String>,
    ) -> Result<Option<String>, EditError> {
        Ok(self.write(normalize(path)?, text.into()))
    }

    /// Removes a file and returns its text, or `None` if there is no such file.
    ///
    /// ```
    /// let mut workspace = threadfold_edl::Workspace::new();
    /// workspace.insert("a", "one")?;
    /// assert_eq!(workspace.remove("a"), Some("one".to_owned()));
    /// assert_eq!(workspace.remove("a"), None);
    /// # Ok::<(), threadfold_edl::EditError>(())
    /// ```
    pub fn remove(&mut self, path: &str) -> Option<String> {
        self.files.remove(&normalize(path).ok()?).map(|file| file.text)
    }

    /// Returns the text of a file.
    ///
    /// ```
    /// let mut workspace = threadfold_edl::Workspace::new();
    /// workspace.insert("a", "one")?;
    /// assert_eq!(workspace.text("b/../a"), Some("one"));
    /// # Ok::<(), threadfold_edl::EditError>(())
    /// ```
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        Some(&self.file(path)?.text)
    }

    /// Returns the version of a file: a number that no earlier write in this workspace had.
    ///
    /// ```
    /// let mut workspace = threadfold_edl::Workspace::new();
    /// workspace.insert("a", "one")?;
    /// let before = workspace.version("a");
    /// workspace.insert("a", "one")?;
    /// assert_ne!(workspace.version("a"), before);
    /// # Ok::<(), threadfold_edl::EditError>(())
    /// ```
    #[must_use]
    pub fn version(&self, path: &str) -> Option<u64> {
        Some(self.file(path)?.version)
    }

    /// Returns the paths and texts of all files, in the order of their paths.
    ///
    /// ```
    /// use threadfold_edl::Workspace;
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("src/b.rs", "fn b() {}")?;
    /// workspace.insert("./src/a.rs", "fn a() {}")?;
    /// let files: Vec<(&str, &str)> = workspace.files().collect();
    /// assert_eq!(files, [("src/a.rs", "fn a() {}"), ("src/b.rs", "fn b() {}")]);
    /// # Ok::<(), threadfold_edl::EditError>(())
    /// ```
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text.as_str()))
    }

    /// Returns the text of a register.
    ///
    /// ```
    /// use threadfold_edl::{Script, Workspace};
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("a", "one two")?;
    /// Script::parse("file a select /one / cut first")?.run(&mut workspace);
    /// assert_eq!(workspace.register("first"), Some("one "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn register(&self, name: &str) -> Option<&str> {
        self.registers.texts.get(name).map(String::as_str)
    }

    /// Returns the names and texts of all registers, in the order of their names.
    ///
    /// ```
    /// use threadfold_edl::{Script, Workspace};
    ///
    /// let mut workspace = Workspace::new();
    /// workspace.insert("a", "one two")?;
    /// Script::parse("file a select /two/ cut second\nselect /one / cut first")?.run(&mut workspace);
    /// let registers: Vec<(&str, &str)> = workspace.registers().collect();
    /// assert_eq!(registers, [("first", "one "), ("second", "two")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn registers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.registers.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Removes all registers.
    ///
    /// ```
    /// let mut workspace = threadfold_edl::Workspace::new();
    /// workspace.clear_registers();
    /// assert_eq!(workspace.registers().count(), 0);
    /// ```
    pub fn clear_registers(&mut self) {
        self.registers.texts.clear();
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.get(&normalize(path).ok()?)
    }

    /// Writes a file whose path is in its normal form, and returns its old text.
    pub(crate) fn write(&mut self, path: String, text: String) -> Option<String> {
        // A stored workspace may hold the largest number. Even then the next version differs.
        self.writes = self.writes.wrapping_add(1);
        let file = File { text, version: self.writes };
        self.files.insert(path, file).map(|before| before.text)
    }
}

/// Returns the normal form of a path, without empty, `.` and resolvable `..` parts.
///
/// A `..` that would leave the root of an absolute path is dropped. One that leads out of a
/// relative path stays. The file system is not read.
pub(crate) fn normalize(path: &str) -> Result<String, EditError> {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            name => parts.push(name),
        }
    }
    if parts.last().is_none_or(|last| *last == "..") {
        return Err(EditError::EmptyPath { path: path.to_owned() });
    }
    Ok(format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/")))
}

/// Deserializes files. The stored form may come from elsewhere, so paths are normalized again.
fn with_normal_paths<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, File>, D::Error> {
    let files = BTreeMap::<String, File>::deserialize(deserializer)?;
    let normal = files.into_iter().map(|(path, file)| Ok((normalize(&path)?, file)));
    normal.collect::<Result<_, EditError>>().map_err(D::Error::custom)
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
            versions.push(workspace.version("a"));
        }
        assert_eq!(versions, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn a_stored_counter_of_any_size_can_be_continued() {
        let stored =
            format!(r#"{{"files":{{}},"registers":{{}},"writes":{0},"saved":{0}}}"#, u64::MAX);
        let mut workspace: Workspace = serde_json::from_str(&stored).expect("plain data");
        workspace.insert("a", "one").expect("a path");
        workspace.insert("b", "two").expect("a path");
        assert_ne!(workspace.version("a"), workspace.version("b"));
    }

    #[test]
    fn files_are_listed_by_path_and_registers_by_name() {
        let mut workspace = Workspace::new();
        for (path, text) in [("b", "2"), ("c/../a", "1")] {
            workspace.insert(path, text).expect("a path");
        }
        let registers = [("r", "x"), ("q", "y")].map(|(name, text)| (name.into(), text.into()));
        workspace.registers.texts = registers.into();
        assert_eq!(workspace.files().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(workspace.registers().collect::<Vec<_>>(), [("q", "y"), ("r", "x")]);
        let removed = ["/b", "./a", "a"].map(|path| workspace.remove(path));
        assert_eq!(removed, [None, Some("1".to_owned()), None]);
        workspace.clear_registers();
        assert_eq!((workspace.registers().count(), workspace.register("r")), (0, None));
        assert_eq!(workspace.text("b"), Some("2"));
    }

    #[test]
    fn a_stored_workspace_round_trips() {
        let mut workspace = Workspace::new();
        workspace.insert("/a", "né").expect("a path");
        workspace.registers.texts.insert("r".to_owned(), "x".to_owned());
        let stored = serde_json::to_string(&workspace).expect("plain data");
        assert_eq!(serde_json::from_str::<Workspace>(&stored).ok(), Some(workspace));
    }

    #[test]
    fn stored_paths_are_normalized_and_must_name_a_file() {
        let stored = |path: &str| {
            let file = r#"{"text":"x","version":1}"#;
            format!(r#"{{"files":{{"{path}":{file}}},"registers":{{}},"writes":1,"saved":0}}"#)
        };
        let read = serde_json::from_str::<Workspace>(&stored("/a//b")).expect("plain data");
        assert_eq!(read.files().collect::<Vec<_>>(), [("/a/b", "x")]);
        assert!(serde_json::from_str::<Workspace>(&stored("a/..")).is_err());
    }

    fn normal(path: &str) -> Option<String> {
        normalize(path).ok()
    }

    #[test]
    fn spellings_of_a_path_become_one() {
        for spelling in ["/a/b", "/a//b", "/a/./b", "/a/c/../b", "/../a/b", "/a/b/"] {
            assert_eq!(normal(spelling).as_deref(), Some("/a/b"), "{spelling}");
        }
    }

    #[test]
    fn a_relative_path_may_lead_out() {
        assert_eq!(normal("../../a").as_deref(), Some("../../a"));
        assert_eq!(normal("a/../../b").as_deref(), Some("../b"));
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        for path in ["", "/", ".", "a/..", "..", "//", "../.."] {
            assert_eq!(normal(path), None, "{path}");
        }
    }
}
