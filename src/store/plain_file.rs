//! Opening plain files: no link is followed, and new files are accessible to their owner only.
//!
//! The metadata of a path are read before it is opened, without following a link, and compared with
//! those of the open file. A file that was exchanged in between has another inode, and is closed
//! before anything is read or written. `O_NOFOLLOW` would do this in one step, but its value
//! differs between systems, and the standard library does not define it. A missing file is created
//! with `create_new`, which never follows a link.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Why a path could not be opened.
pub(super) enum OpenError {
    /// It is a symbolic link, or was replaced while it was opened.
    Link,
    /// Opening failed, or the path is not a plain file.
    Io(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a file to read it, and to write it if `write`; `None` if there is no file.
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

/// Opens a file to read and write it, and creates it if it is missing: accessible to its owner
/// only, where the system has such permissions.
pub(super) fn open_or_create(path: &Path) -> Result<File, OpenError> {
    loop {
        match create_file(path) {
            // Another process created it. If it is removed before it is opened here, try again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(file) = open(path, true)? {
                    return Ok(file);
                }
            }
            made => return Ok(made?),
        }
    }
}

/// Creates a file that does not exist, accessible to its owner only.
///
/// # Errors
///
/// Those of the system.
pub fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a folder and its missing parents, accessible to their owner only. Existing folders keep
/// their permissions.
///
/// # Errors
///
/// Those of the system.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether both are metadata of the same file. Only on Unix the standard library has a number that
/// identifies a file.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        true
    }
}
