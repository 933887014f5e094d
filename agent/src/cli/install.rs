//! `lastsyn install DIR`: a copy of this program for the exec hook of a container whose image lacks it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use clap::ArgMatches;

use super::{
    exit::Exit,
    output::{remark, result},
};

/// What the copy is called.
const NAME: &str = "lastsyn";

/// This program, also where its file has been replaced meanwhile.
const OWN: &str = "/proc/self/exe";

/// Anybody may run it: the hook runs as whatever user the server's container has.
const MODE: u32 = 0o755;

pub(super) fn main(matches: &ArgMatches) -> Exit {
    let Some(directory) = matches.get_one::<PathBuf>("directory") else {
        return Exit::Usage;
    };
    match install(Path::new(OWN), directory) {
        Ok(copy) => {
            result(format_args!("installed {}", copy.display()));
            Exit::Done
        }
        Err(error) => {
            remark(format_args!(
                "install: {} does not get a copy: {error}; it has to be a directory that this container can write to, such \
                 as an emptyDir volume",
                directory.display()
            ));
            Exit::Failed
        }
    }
}

/// Copies, then renames: a hook that runs meanwhile finds the old program or the new one, and never a part of one.
fn install(program: &Path, directory: &Path) -> io::Result<PathBuf> {
    let unfinished = directory.join(format!(".{NAME}-{}", std::process::id()));
    let destination = directory.join(NAME);
    let outcome = copy(program, &unfinished).and_then(|()| fs::rename(&unfinished, &destination));
    if outcome.is_err() {
        // What is left of it is of no use; the error that counts is the first.
        drop(fs::remove_file(&unfinished));
    }
    outcome.map(|()| destination)
}

fn copy(program: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(program)?;
    let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(to)?;
    io::copy(&mut from, &mut copy)?;
    // Whatever the process's mask is.
    copy.set_permissions(fs::Permissions::from_mode(MODE))?;
    copy.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_whole_and_anybody_may_run_it() {
        let directory = tempfile::tempdir().expect("a directory");
        for content in ["old", "the new one"] {
            let program = directory.path().join("program");
            fs::write(&program, content).expect("written");
            let copy = install(&program, directory.path()).expect("installed");
            assert_eq!(fs::read_to_string(&copy).expect("readable"), content);
            assert_eq!(fs::metadata(&copy).expect("there").permissions().mode() & 0o7777, 0o755);
        }
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 2, "the program and its copy");
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        install(Path::new("/does/not/exist"), directory.path()).expect_err("nothing to copy");
        install(Path::new(OWN), &directory.path().join("missing")).expect_err("no directory");
        // A directory where the program should be: the copy is made, and cannot be put in place.
        fs::create_dir(directory.path().join(NAME)).expect("made");
        install(Path::new(OWN), directory.path()).expect_err("in the way");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }
}
