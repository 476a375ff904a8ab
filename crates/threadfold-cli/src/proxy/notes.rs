//! Where a proxy writes its lines about requests.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
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
    File(Mutex<File>),
}

impl Notes {
    /// Opens a file for lines, and keeps the earlier ones as long as there are not too many.
    pub(crate) fn in_file(path: &Path) -> io::Result<Self> {
        let is_full = fs::metadata(path).is_ok_and(|found| found.len() > MAX_FILE);
        let mut options = OpenOptions::new();
        options.create(true).append(!is_full).write(true).truncate(is_full);
        Ok(Self::File(Mutex::new(options.open(path)?)))
    }

    /// Writes a line. A line that cannot be written is dropped: no request depends on it.
    pub(crate) fn line(&self, text: &str) {
        let text = first_line(text, 300);
        match self {
            // Whoever read the lines may be gone; that must not cost a request.
            Self::StandardError => drop(writeln!(io::stderr(), "threadfold: {text}")),
            Self::File(file) => {
                let now: Timestamp = std_clock().now();
                let mut file = locked(file);
                let _ = writeln!(file, "{now} {text}");
            }
        }
    }
}
