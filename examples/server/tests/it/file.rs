//! The file of a database.

use std::{
    env, fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use threadfold_sqlite::SqliteStore;

/// The file of a database, removed on drop.
pub(crate) struct File(pub(crate) PathBuf);

impl File {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("threadfold-server-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder.join("threads.db"))
    }

    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}
