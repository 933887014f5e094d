//! Debian's package manager: installing into the system, and fetching from another suite without touching it.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// After this time apt's lists may name packages that the mirror has replaced.
const LISTS_LIFETIME: Duration = Duration::from_hours(24);

/// Installs packages, after reading the mirror's lists again where they are missing or old.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if process::find_program("apt-get").is_none() {
        bail!("this machine has no apt-get: install these programs' packages by hand, then run this again: {names}");
    }
    if fs::metadata("/proc/self").context("cannot read /proc")?.uid() != 0 {
        bail!("installing packages needs root: run this as root, or run `sudo apt-get install {names}` first");
    }
    let mut updated = false;
    if lists_are_stale(Path::new("/var/lib/apt/lists")) {
        update()?;
        updated = true;
    }
    eprintln!("Installing {names}");
    match process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages)) {
        Err(_) if !updated => {
            // A mirror replaces packages at any time; then the lists name files that are gone.
            update()?;
            process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages))
        }
        result => result,
    }
}

/// Downloads a package of the system's own suites into a directory, without installing it. Needs no root where the mirror's
/// lists are fresh.
pub(crate) fn download(package: &str, into: &Path) -> Result<()> {
    if lists_are_stale(Path::new("/var/lib/apt/lists")) {
        update()?;
    }
    // apt's own user may not be allowed to write there.
    process::run(apt_get().current_dir(into).args(["-o", "APT::Sandbox::User=root", "download", package]))
}

fn update() -> Result<()> {
    eprintln!("Reading the mirror's package lists");
    process::run(apt_get().arg("update"))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["--quiet=2", "-o", "Dpkg::Use-Pty=0"]);
    command
}

/// Whether the package lists are missing or were last read long ago. The files carry the mirror's times, the directory
/// the time of the last update.
fn lists_are_stale(directory: &Path) -> bool {
    let has_lists = fs::read_dir(directory).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains("_Packages")))
    });
    let read_at = fs::metadata(directory).and_then(|metadata| metadata.modified());
    // A time in the future has no age.
    let age = read_at.ok().and_then(|at| now().duration_since(at).ok()).unwrap_or_default();
    !has_lists || age > LISTS_LIFETIME
}

#[expect(clippy::disallowed_methods, reason = "files have wall times, and nothing in the product depends on this one")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// An apt with sources, lists and cache of its own, so that nothing of another suite gets into the system. Needs no
/// root. The signatures are checked as everywhere.
pub(crate) struct SeparateApt {
    directory: tempfile::TempDir,
}

// === impl SeparateApt ===

impl SeparateApt {
    /// Reads the package lists of `sources`, the text of a deb822 file, below `parent`.
    pub(crate) fn new(parent: &Path, sources: &str) -> Result<Self> {
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            if process::find_program(program).is_none() {
                bail!("this machine has no {program}");
            }
        }
        let directory = tempfile::Builder::new()
            .prefix(".apt-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a directory in {}", parent.display()))?;
        let apt = Self { directory };
        for name in ["lists/partial", "cache/archives/partial"] {
            let path = apt.path().join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let list = apt.sources();
        fs::write(&list, sources).with_context(|| format!("cannot write {}", list.display()))?;
        process::run(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    /// The versions of a package that the sources offer.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let table = process::read(self.command("apt-cache").args(["madison", package]))?;
        Ok(table.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned())).collect())
    }

    /// Downloads a package and unpacks it into the directory that is returned, below this one's.
    pub(crate) fn unpack(&self, package: &str, version: &str) -> Result<PathBuf> {
        let downloads = self.path().join("downloads").join(package); // its own, so that no other archive is taken for it
        fs::create_dir_all(&downloads).with_context(|| format!("cannot make {}", downloads.display()))?;
        process::run(
            self.command("apt-get").current_dir(&downloads).arg("download").arg(format!("{package}={version}")),
        )?;
        let archive = fs::read_dir(&downloads)
            .with_context(|| format!("cannot list {}", downloads.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .with_context(|| format!("apt-get downloaded no archive of {package}"))?;
        let unpacked = self.path().join("unpacked");
        process::run(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(&unpacked))?;
        Ok(unpacked)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn sources(&self) -> PathBuf {
        self.path().join("own.sources") // apt knows deb822 by the name's end
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = |name: &str| self.path().join(name).display().to_string();
        for option in [
            format!("Dir::Etc::sourcelist={}", self.sources().display()),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::Cache={}", path("cache")),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(), // apt's own user cannot write here
            "APT::Update::Error-Mode=any".to_owned(), // a list that cannot be had is a failure, not a warning
        ] {
            command.arg("-o").arg(option);
        }
        command.arg("--quiet=2");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_stale_when_missing_or_old() {
        let parent = tempfile::tempdir().unwrap();
        let lists = parent.path().join("lists");
        assert!(lists_are_stale(&lists));
        fs::create_dir(&lists).unwrap();
        fs::write(lists.join("lock"), "").unwrap();
        assert!(lists_are_stale(&lists));
        fs::write(lists.join("mirror_dists_bookworm_main_binary-amd64_Packages.lz4"), "").unwrap();
        assert!(!lists_are_stale(&lists));
        let old = now() - LISTS_LIFETIME - Duration::from_mins(1);
        fs::File::open(&lists).unwrap().set_modified(old).unwrap();
        assert!(lists_are_stale(&lists));
    }
}
