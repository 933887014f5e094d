//! Where the agent's program is, and whether it is what its sources say.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};

/// Names another program than the workspace's own; its age is then nobody's business.
const OVERRIDE: &str = "LASTSYN_BINARY";

/// The program that `cargo build` put beside the running one.
///
/// # Errors
///
/// When it is missing, or older than one of its sources: a test of an old agent proves nothing.
pub(super) fn find() -> Result<PathBuf> {
    if let Some(path) = env::var_os(OVERRIDE) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "{OVERRIDE} names {}, which is no file", path.display());
        return Ok(path);
    }
    let own = env::current_exe().context("the running program's file is not known")?;
    let binary = beside(&own)?;
    ensure!(binary.is_file(), "there is no agent at {}: run `cargo build`, or set {OVERRIDE}", binary.display());
    check_age(&binary)?;
    Ok(binary)
}

/// Tests run from `target/PROFILE/deps`, examples from `target/PROFILE/examples`, other programs from `target/PROFILE`.
fn beside(own: &Path) -> Result<PathBuf> {
    let mut directory = own.parent();
    if ["deps", "examples"].map(|name| Some(OsStr::new(name))).contains(&directory.and_then(Path::file_name)) {
        directory = directory.and_then(Path::parent);
    }
    Ok(directory.context("the running program is in no directory")?.join("lastsyn"))
}

/// Compares the program with the files that cargo lists as its sources, the kernel object among them.
fn check_age(binary: &Path) -> Result<()> {
    let list = binary.with_extension("d");
    let text = fs::read_to_string(&list)
        .with_context(|| format!("the sources of the agent are not listed in {}: run `cargo build`", list.display()))?;
    let built = modified(binary)?;
    for source in sources(&text) {
        match modified(&source) {
            Ok(changed) if changed <= built => {}
            Ok(_) => bail!("the agent at {} is older than {}: run `cargo build`", binary.display(), source.display()),
            Err(error) => return Err(error.context("a source of the agent is gone: run `cargo build`")),
        }
    }
    Ok(())
}

/// The sources in a rule of make: `target: source source ...`, with a backslash before a space in a name.
fn sources(rule: &str) -> impl Iterator<Item = PathBuf> {
    let names = rule.lines().filter_map(|line| line.split_once(": ")).map(|(_, names)| names.replace("\\ ", "\0"));
    names.flat_map(|names| {
        names.split_ascii_whitespace().map(|name| PathBuf::from(name.replace('\0', " "))).collect::<Vec<_>>()
    })
}

fn modified(path: &Path) -> Result<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).with_context(|| format!("the age of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use super::*;

    #[test]
    fn the_agent_is_beside_the_running_program() {
        for own in ["/w/target/debug/deps/lab-570d8a", "/w/target/debug/examples/scene", "/w/target/debug/xtask"] {
            assert_eq!(beside(Path::new(own)).unwrap(), Path::new("/w/target/debug/lastsyn"));
        }
    }

    #[test]
    fn sources_are_listed() {
        let listed: Vec<PathBuf> = sources("/w/target/debug/lastsyn: /w/agent/main.rs /w/my\\ object.o\n").collect();
        assert_eq!(listed, [PathBuf::from("/w/agent/main.rs"), PathBuf::from("/w/my object.o")]);
    }

    #[test]
    fn an_old_agent_is_not_tested() {
        let directory = tempfile::tempdir().unwrap();
        let [binary, source] = ["lastsyn", "main.rs"].map(|name| directory.path().join(name));
        assert!(format!("{:#}", check_age(&binary).unwrap_err()).contains("cargo build"));

        let built = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        File::create(&binary).unwrap().set_modified(built).unwrap();
        File::create(&source).unwrap().set_modified(built).unwrap();
        fs::write(directory.path().join("lastsyn.d"), format!("{}: {}\n", binary.display(), source.display())).unwrap();
        check_age(&binary).unwrap();

        File::open(&source).unwrap().set_modified(built + Duration::from_nanos(1)).unwrap();
        let error = format!("{:#}", check_age(&binary).unwrap_err());
        assert!(error.contains("main.rs") && error.contains("cargo build"), "{error}");

        fs::remove_file(&source).unwrap();
        assert!(format!("{:#}", check_age(&binary).unwrap_err()).contains("cargo build"));
    }
}
