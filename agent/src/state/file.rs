//! Reads the state file, and writes it as a whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::content::LIMIT;

/// What of a write failed.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}: {error}", path.display())]
pub struct FileError {
    what: &'static str,
    path: PathBuf,
    error: io::Error,
}

/// The file's bytes, at most one more than any state file has; `None` where there is none.
///
/// # Errors
///
/// If it is there and cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let failed = |error| FileError { what: "cannot read", path: path.to_owned(), error };
    // The directory is one of several containers: what somebody put there in the file's place is not followed, and not waited for.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes a file beside it, has it on the disk, and puts it in its place: whoever reads finds the whole of before or the whole of now,
/// also after a power cut.
///
/// # Errors
///
/// With what failed; the file is what it was before.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let new = beside(path);
    let written = put(&new, text).and_then(|()| {
        let failed = |error| FileError { what: "cannot put in place", path: path.to_owned(), error };
        fs::rename(&new, path).map_err(failed)
    });
    if written.is_err() {
        // It takes room that others may need.
        drop(fs::remove_file(&new));
    }
    written?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error| FileError { what: "cannot have on the disk", path: directory.to_owned(), error };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

fn put(new: &Path, text: &str) -> Result<(), FileError> {
    let failed = |what| move |error| FileError { what, path: new.to_owned(), error };
    match fs::remove_file(new) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("cannot remove")(error)),
    }
    // Only one that is not there is made: nothing is followed elsewhere.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o644).open(new);
    let mut file = created.map_err(failed("cannot create"))?;
    file.write_all(text.as_bytes()).map_err(failed("cannot write"))?;
    file.sync_all().map_err(failed("cannot have on the disk"))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_stays_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        assert!(read(&path).unwrap().is_none());
        assert!(read(&directory.path().join("none/state.json")).unwrap().is_none());
        // What an agent left that was killed.
        fs::write(directory.path().join("state.json.new"), "half").unwrap();
        for text in ["one", "two"] {
            write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        let error = write(&directory.path().join("none/state.json"), "three").unwrap_err().to_string();
        assert!(error.starts_with("cannot create ") && error.contains("none/state.json.new: No such file"), "{error}");
    }

    #[test]
    fn nothing_is_followed_and_nothing_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        fs::write(&other, "not ours").unwrap();
        let path = directory.path().join("state.json");
        symlink(&other, &path).unwrap();
        symlink(&other, beside(&path)).unwrap();
        assert!(read(&path).is_err());
        write(&path, "ours").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"not ours");
        assert_eq!(read(&path).unwrap().unwrap(), b"ours");

        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(read(&pipe).unwrap_err().to_string().ends_with("it is no file"));
        assert!(read(directory.path()).is_err());
        let large = directory.path().join("large");
        fs::write(&large, vec![b' '; LIMIT + 10]).unwrap();
        assert_eq!(read(&large).unwrap().unwrap().len(), LIMIT + 1);
    }
}
