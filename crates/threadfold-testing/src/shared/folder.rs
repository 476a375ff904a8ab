//! A temporary folder for one test.

use std::{
    env, fs,
    ops::Deref,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

/// An empty folder, removed on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates one for this process.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[allow(clippy::new_without_default, reason = "a value with a side effect is no default")]
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("threadfold-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
