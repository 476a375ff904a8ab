//! Conformance cases: one file each, text in sections, so that a new case is a new file.
//!
//! A line `--- name` opens a section; the lines up to the next one are its body. Bodies end with
//! the line break of their last line.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Case {
    /// The file that it came from, without its ending.
    pub name: String,
    /// Its sections, in order: name and body.
    pub sections: Vec<(String, String)>,
}

impl Case {
    /// Reads a case.
    ///
    /// ```
    /// use threadfold::testing::cases::Case;
    ///
    /// let case = Case::parse("greets", "--- in\nhi\n--- out\nhello\n");
    /// assert_eq!(case.section("out"), Some("hello\n"));
    /// ```
    #[must_use]
    pub fn parse(name: impl Into<String>, text: &str) -> Self {
        let mut sections: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(section) = line.strip_prefix("--- ") {
                sections.push((section.trim_end().to_owned(), String::new()));
            } else if let Some((_, body)) = sections.last_mut() {
                body.push_str(line);
            }
        }
        Self { name: name.into(), sections }
    }

    /// The body of the first section of this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&str> {
        self.sections.iter().find(|(found, _)| found == name).map(|(_, body)| body.as_str())
    }

    /// The sections whose name begins with this word: the rest of the name, and the body.
    pub fn sections_of<'a>(&'a self, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.sections.iter().filter_map(move |(name, body)| {
            let rest = name.strip_prefix(word)?;
            (rest.is_empty() || rest.starts_with(' ')).then_some((rest.trim(), body.as_str()))
        })
    }
}

/// Reads all cases of a folder (`*.txt`), in the order of their names.
///
/// # Errors
///
/// Those of the file system; and `NotFound` if there is no case, so that a test which runs nothing
/// does not pass.
pub fn read(folder: impl AsRef<Path>) -> io::Result<Vec<Case>> {
    let folder = folder.as_ref();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    if paths.is_empty() {
        let text = format!("no case in {}", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    let case = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Case::parse(name, &fs::read_to_string(path)?))
    };
    paths.iter().map(case).collect()
}
