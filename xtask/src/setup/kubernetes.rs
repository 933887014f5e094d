//! What the lab's Kubernetes runs: etcd, from Debian, and the Kubernetes commands, built from their Go module.
//!
//! `tests/kubernetes/go.mod` decides the version. All programs of a version are in one directory of the cache, with their
//! digests, which are checked before they are used again.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::{cache, debian_files};
use crate::{process, workspace};

/// Names a directory that has the programs already. Nothing is built or checked then.
pub(super) const OWN_PROGRAMS: &str = "LASTSYN_KUBERNETES";

/// The Kubernetes commands that the lab runs. The first one fills Go's build cache, which the others use.
const COMMANDS: [&str; 4] = ["kube-proxy", "kube-apiserver", "kube-controller-manager", "kubelet"];

/// The oldest suite of Debian with an etcd that this Kubernetes takes. Its etcd needs no library.
const ETCD_SUITE: &str = "trixie";
const ETCD_PACKAGE: &str = "etcd-server";
const ETCD: &str = "etcd";

/// Names of programs and their SHA-256, as `sha256sum` writes them.
const DIGESTS: &str = "SHA256SUMS";

/// The directory of the programs, after they have been made where they were not there or are not what was made.
pub(crate) fn ensure() -> Result<PathBuf> {
    if let Some(directory) = env::var_os(OWN_PROGRAMS) {
        return Ok(directory.into());
    }
    let module = workspace::root()?.join("tests/kubernetes");
    let version = version(&module)?;
    let directory = cache::directory()?.join(format!("kubernetes-{version}"));
    let stamp = format!("kubernetes {version}, etcd of Debian {ETCD_SUITE}\n");
    if is_whole(&directory, &stamp) {
        return Ok(directory);
    }
    let _lock = cache::lock()?;
    // Another run may have made them while this one waited.
    if !is_whole(&directory, &stamp) {
        cache::replace(&directory, &stamp, |destination| {
            debian_files::fetch(ETCD_SUITE, &[(ETCD_PACKAGE, &["usr/bin/etcd"])], destination)?;
            process::read(Command::new(destination.join(ETCD)).arg("--version"))
                .context("the new etcd does not run")?;
            for command in COMMANDS {
                build(&module, &version, command, destination)?;
            }
            let digests = process::read(Command::new("sha256sum").current_dir(destination).arg(ETCD).args(COMMANDS))?;
            fs::write(destination.join(DIGESTS), digests + "\n")
                .with_context(|| format!("cannot write {DIGESTS} in {}", destination.display()))
        })?;
    }
    Ok(directory)
}

/// The version that the module requires, such as `1.37.2`.
fn version(module: &Path) -> Result<String> {
    let file = module.join("go.mod");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    required(&text).map(str::to_owned).with_context(|| format!("{} requires no k8s.io/kubernetes", file.display()))
}

fn required(module: &str) -> Option<&str> {
    module.lines().find_map(|line| line.trim().strip_prefix("require k8s.io/kubernetes v"))
}

fn is_whole(directory: &Path, stamp: &str) -> bool {
    if cache::stamp(directory).as_deref() != Some(stamp) {
        return false;
    }
    let as_made = Command::new("sha256sum")
        .current_dir(directory)
        .args(["--check", "--strict", "--status", DIGESTS])
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !as_made {
        eprintln!("{} is not what was made, and is made again", directory.display());
    }
    as_made
}

fn build(module: &Path, version: &str, command: &str, destination: &Path) -> Result<()> {
    if process::find_program("go").is_none() {
        bail!(
            "Kubernetes is built with Go, which is not on this machine: install Go (`go.mod` in {} names the version), or \
             set {OWN_PROGRAMS} to a directory with the programs {ETCD}, {}",
            module.display(),
            COMMANDS.join(", ")
        );
    }
    eprintln!("Building {command} {version} (minutes; the first one of all takes nine on two processors)");
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, rest)| Some((major, rest.split_once('.')?.0)))
        .with_context(|| format!("`{version}` is no version of Kubernetes"))?;
    let set = |name: &str, value: &str| format!(" -X k8s.io/component-base/version.{name}={value}");
    let flags =
        ["-s -w".to_owned(), set("gitVersion", &format!("v{version}")), set("gitMajor", major), set("gitMinor", minor)]
            .concat();
    process::run(
        Command::new("go")
            .current_dir(module)
            .env("CGO_ENABLED", "0")
            .args(["build", "-buildvcs=false", "-mod=readonly", "-trimpath", "-ldflags", &flags, "-o"])
            .arg(destination.join(command))
            .arg(format!("k8s.io/kubernetes/cmd/{command}")),
    )?;
    let said = process::read(Command::new(destination.join(command)).arg("--version"))
        .with_context(|| format!("the new {command} does not run"))?;
    if said != format!("Kubernetes v{version}") {
        bail!("the new {command} calls itself `{said}`, not {version}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_tells_the_version() {
        let module = workspace::root().unwrap().join("tests/kubernetes");
        let version = version(&module).unwrap();
        assert_eq!(version.split('.').count(), 3, "{version}");
        let text = fs::read_to_string(module.join("go.mod")).unwrap();
        let minor_and_patch = version.split_once('.').unwrap().1;
        assert!(text.contains(&format!("k8s.io/api => k8s.io/api v0.{minor_and_patch}\n")), "{version}");
        assert_eq!(required("module m\n\ngo 1.26\n"), None);
    }

    #[test]
    fn programs_that_changed_are_not_used_again() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("kubernetes");
        cache::replace(&place, "made", |content| {
            fs::write(content.join("program"), "1")?;
            let digests = process::read(Command::new("sha256sum").current_dir(content).arg("program"))?;
            Ok(fs::write(content.join(DIGESTS), digests + "\n")?)
        })
        .unwrap();
        assert!(is_whole(&place, "made"));
        assert!(!is_whole(&place, "made of something else"));
        fs::write(place.join("program"), "2").unwrap();
        assert!(!is_whole(&place, "made"));
        fs::remove_file(place.join("program")).unwrap();
        assert!(!is_whole(&place, "made"));
    }
}
