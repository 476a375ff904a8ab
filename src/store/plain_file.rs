//! Opening files that are files: no link is followed, and what is made is the owner's alone.
//!
//! A path is looked at before it is opened, without following a link, and the open file is compared
//! with what was seen there. What was exchanged in between has another number on its device, and is
//! closed again before anything is read or written. `O_NOFOLLOW` would do the same in one step, but
//! its number differs between systems and processors, and the standard library names it nowhere. A
//! file that is not there is made with `create_new`, which never follows a link.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Why a path was not opened.
pub(super) enum OpenError {
    /// It is a symbolic link, or became one.
    Link,
    /// It cannot be opened, or is no plain file.
    Io(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a file to read it, and to write it if `write`; `None` if there is none.
pub(super) fn open(path: &Path, write: bool) -> Result<Option<File>, OpenError> {
    let seen = match fs::symlink_metadata(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if seen.is_symlink() {
        return Err(OpenError::Link);
    }
    // Opening a pipe would wait for its other end.
    if !seen.is_file() {
        return Err(io::Error::other("not a plain file").into());
    }
    let file = match OpenOptions::new().read(true).write(write).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if is_same(&seen, &file.metadata()?) { Ok(Some(file)) } else { Err(OpenError::Link) }
}

/// Opens a file to read and write it, and makes it if it is not there: readable and writable for
/// its owner alone, where the system has such permissions.
pub(super) fn open_or_create(path: &Path) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    private_file(&mut options);
    loop {
        match options.open(path) {
            // Somebody else made it. If it is gone by the time that it is opened, it is made again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(file) = open(path, true)? {
                    return Ok(file);
                }
            }
            made => return Ok(made?),
        }
    }
}

/// Makes a folder and those above it that are not there, for their owner alone. Those that are there
/// stay as they are.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    private_folder(&mut builder);
    builder.create(path)
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere files have no number that the standard library tells.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn private_file(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn private_file(_: &mut OpenOptions) {}

#[cfg(unix)]
fn private_folder(builder: &mut DirBuilder) {
    use std::os::unix::fs::DirBuilderExt;
    builder.mode(0o700);
}

#[cfg(not(unix))]
fn private_folder(_: &mut DirBuilder) {}
