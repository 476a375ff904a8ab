//! Test cases in text files, one file each, divided into sections.
//!
//! A line `--- name` opens a section; the lines up to the next one are its body. A body includes
//! the line break of its last line.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the file, without its extension.
    pub name: String,
    /// The sections in order: name and body.
    pub sections: Vec<(String, String)>,
}

impl Case {
    /// Parses a case. Lines before the first section are ignored.
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
    pub fn section(&self, name: &str) -> Option<&str> {
        self.sections.iter().find(|(found, _)| found == name).map(|(_, body)| body.as_str())
    }

    /// Returns the sections whose name begins with this word: the rest of the name, and the body.
    pub fn sections_of<'a>(&'a self, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.sections.iter().filter_map(move |(name, body)| {
            let rest = name.strip_prefix(word)?;
            (rest.is_empty() || rest.starts_with(' ')).then_some((rest.trim(), body.as_str()))
        })
    }
}

/// Reads all cases of a folder (`*.txt`), sorted by name.
/// A folder without a case is an error, because a test
/// would pass without running anything.
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
