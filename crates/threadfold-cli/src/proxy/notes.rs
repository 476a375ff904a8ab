//! Where a proxy writes its lines about requests.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

use threadfold::{
    message::Timestamp,
    model::{Clock, std_clock},
};
use threadfold_terminal::first_line;

use super::lock::locked;

/// The size from which a file begins anew, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// The place of the lines.
#[derive(Debug)]
pub(crate) enum Notes {
    StandardError,
    /// A file, because the screen belongs to an agent.
    File(PathBuf, Mutex<File>),
}

impl Notes {
    /// Opens a file for lines, and keeps the earlier ones as long as there are not too many.
    pub(crate) fn in_file(path: &Path) -> io::Result<Self> {
        Ok(Self::File(path.to_owned(), Mutex::new(open(path)?)))
    }

    /// Writes a line. A line that cannot be written is dropped: no request depends on it.
    pub(crate) fn line(&self, text: &str) {
        let text = first_line(text, 300);
        match self {
            // Whoever read the lines may be gone; that must not cost a request.
            Self::StandardError => drop(writeln!(io::stderr(), "threadfold: {text}")),
            Self::File(path, file) => {
                let now: Timestamp = std_clock().now();
                let mut file = locked(file);
                if file.metadata().is_ok_and(|found| found.len() > MAX_FILE)
                    && let Ok(anew) = open(path)
                {
                    *file = anew;
                }
                let _ = writeln!(file, "{now} {text}");
            }
        }
    }
}

/// Opens a file to append to it. One that is full is emptied first.
fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|found| found.len() > MAX_FILE) {
        File::create(path)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_anew_while_it_is_written() {
        let path =
            std::env::temp_dir().join(format!("threadfold-notes-{}.log", std::process::id()));
        let notes = Notes::in_file(&path).unwrap();
        for _ in 0..MAX_FILE / 200 {
            notes.line(&"x".repeat(200));
        }
        notes.line("the last one");
        let text = fs::read_to_string(&path).unwrap();
        assert!((text.len() as u64) < MAX_FILE / 2, "{}", text.len());
        assert!(text.ends_with(" the last one\n"));
        // Another process of the folder writes into the same file.
        Notes::in_file(&path).unwrap().line("of another");
        notes.line("and of this one");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(" of another\n") && text.ends_with(" and of this one\n"));
        fs::remove_file(&path).unwrap();
    }
}
