//! The folder in which the agent works. Paths outside it are refused.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

/// The maximum bytes of a file that are read.
const MOST_BYTES: u64 = 256 * 1024;

/// The maximum number of files that are listed or searched.
const MOST_FILES: usize = 2_000;

/// A folder whose files a model may read and change.
///
/// A path from the model is relative, has no `..`, and passes through no link. The check and the
/// use are two steps, so a hostile program in the same folder could insert a link between them:
/// against such programs an agent needs a sandbox of the operating system.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens a folder. The path of the folder itself may hold links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if root.is_dir() { Ok(Self { root }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the text of a file.
    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        let place = self.place(path)?;
        let found = fs::symlink_metadata(&place).map_err(|error| wrong(path, error))?;
        // Reading a pipe or a device might never end.
        if !found.is_file() {
            return Err(format!("{path} is no file"));
        }
        if found.len() > MOST_BYTES {
            return Err(format!("{path} has {} bytes; the maximum is {MOST_BYTES}", found.len()));
        }
        let mut text = String::new();
        let file = File::open(place).map_err(|error| wrong(path, error))?;
        // The file may have grown since the check.
        let read = file.take(MOST_BYTES).read_to_string(&mut text);
        read.map_err(|error| wrong(path, error))?;
        Ok(text)
    }

    /// Writes a file, new or not. Missing folders are created.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let place = self.place(path)?;
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).map_err(|error| wrong(path, error))?;
        }
        fs::write(place, text).map_err(|error| wrong(path, error))
    }

    /// Whether something has this path.
    pub(crate) fn has(&self, path: &str) -> Result<bool, String> {
        Ok(fs::symlink_metadata(self.place(path)?).is_ok())
    }

    /// Returns the paths of all files below a folder, sorted, without links, hidden files and build
    /// folders.
    pub(crate) fn files(&self, path: &str) -> Result<Vec<String>, String> {
        let start = if matches!(path, "" | ".") { self.root.clone() } else { self.place(path)? };
        let (mut folders, mut files) = (vec![start], Vec::new());
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| wrong(path, error))?;
            for entry in entries.flatten() {
                let (name, place) = (entry.file_name(), entry.path());
                let hidden = name.to_string_lossy().starts_with('.');
                let Ok(kind) = entry.file_type() else { continue };
                if hidden || name == "target" || name == "node_modules" {
                    continue;
                }
                if kind.is_dir() {
                    folders.push(place);
                } else if kind.is_file() && files.len() < MOST_FILES {
                    files.push(self.name(&place));
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Returns the path of a file as the model writes it.
    fn name(&self, place: &Path) -> String {
        let inside = place.strip_prefix(&self.root).unwrap_or(place);
        let parts = inside.components().map(|part| part.as_os_str().to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Returns the location of a path from the model, if it is inside the folder.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let mut place = self.root.clone();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => place.push(name),
                Component::CurDir => continue,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(format!("{path} leads out of the folder: give a relative path"));
                }
            }
            if fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
                return Err(format!("{path} passes through a link; links are not followed"));
            }
        }
        if place == self.root { Err("a path is needed".to_owned()) } else { Ok(place) }
    }
}

/// Returns an error without the absolute path, which the model should not see.
fn wrong(path: &str, error: io::Error) -> String {
    format!("{path}: {error}")
}

#[cfg(test)]
mod tests {
    use std::{env, process, sync::atomic::AtomicU32};

    use super::*;

    /// A folder with `inside/a.txt`, beside a file that is outside. It is gone with the test.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new() -> (Self, Folder) {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let name = format!("threadfold-folder-{}-{number}", process::id());
            let path = env::temp_dir().join(name);
            fs::create_dir_all(path.join("root/inside")).unwrap();
            fs::write(path.join("root/inside/a.txt"), "within").unwrap();
            fs::write(path.join("secret.txt"), "outside").unwrap();
            let folder = Folder::open(&path.join("root")).unwrap();
            (Self(path), folder)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_in_the_folder_are_read_written_and_listed() {
        let (_guard, folder) = Temporary::new();
        assert_eq!(folder.read("inside/a.txt").as_deref(), Ok("within"));
        assert_eq!(folder.read("./inside/./a.txt").as_deref(), Ok("within"));
        folder.write("new/deep/b.txt", "written").unwrap();
        assert_eq!(folder.read("new/deep/b.txt").as_deref(), Ok("written"));
        assert_eq!(folder.files("").unwrap(), ["inside/a.txt", "new/deep/b.txt"]);
        assert_eq!(folder.files("inside").unwrap(), ["inside/a.txt"]);
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let (guard, folder) = Temporary::new();
        let absolute = guard.0.join("secret.txt");
        let absolute = absolute.to_str().unwrap();
        for path in ["../secret.txt", "inside/../../secret.txt", "inside/..", "..", absolute, "/"] {
            assert!(folder.read(path).is_err(), "{path} was read");
            assert!(folder.write(path, "x").is_err(), "{path} was written");
            assert!(folder.files(path).is_err(), "{path} was listed");
        }
        for path in ["", ".", "./"] {
            assert!(folder.read(path).is_err() && folder.write(path, "x").is_err());
        }
        assert_eq!(fs::read_to_string(guard.0.join("secret.txt")).unwrap(), "outside");
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        use std::os::unix::fs::symlink;

        let (guard, folder) = Temporary::new();
        symlink(guard.0.join("secret.txt"), folder.root().join("file")).unwrap();
        symlink(&guard.0, folder.root().join("above")).unwrap();
        symlink(guard.0.join("not-there"), folder.root().join("dangling")).unwrap();
        for path in ["file", "above/secret.txt", "above/new.txt", "dangling", "above"] {
            assert!(folder.read(path).is_err(), "{path} was read");
            assert!(folder.write(path, "x").is_err(), "{path} was written");
            assert!(folder.files(path).is_err(), "{path} was listed");
        }
        assert_eq!(folder.files("").unwrap(), ["inside/a.txt"]);
        assert_eq!(fs::read_to_string(guard.0.join("secret.txt")).unwrap(), "outside");
        assert!(!guard.0.join("new.txt").exists() && !guard.0.join("not-there").exists());
    }
}
