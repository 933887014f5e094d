//! Single files of Debian's packages, of another suite than the machine's, without installing anything.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use super::{apt::SeparateApt, apt_sources, apt_sources::Source, cache};
use crate::process;

/// A package, and the files of it that are wanted.
pub(crate) type Wanted<'a> = (&'a str, &'a [&'a str]);

/// Puts files of packages of a suite into a directory, under their own names. They come from the mirror of the machine's own
/// apt sources.
pub(crate) fn fetch(suite: &str, packages: &[Wanted<'_>], destination: &Path) -> Result<()> {
    let mirrors = apt_sources::debian_mirrors()?;
    let names = packages.iter().map(|(package, _)| *package).collect::<Vec<_>>().join(", ");
    if mirrors.is_empty() {
        bail!("this machine's apt sources name no Debian mirror, from which {names} of {suite} would come");
    }
    let mut failures = Vec::new();
    for mirror in mirrors {
        match from(&mirror, suite, packages, destination) {
            Ok(()) => return Ok(()),
            Err(error) => failures.push(format!("{}: {error:#}", mirror.uri)),
        }
    }
    bail!("no mirror gave {names}: {}", failures.join("; "))
}

fn from(mirror: &Source, suite: &str, packages: &[Wanted<'_>], destination: &Path) -> Result<()> {
    let apt = SeparateApt::new(&cache::directory()?, &mirror.stanza(&[suite], "main"))?;
    for (package, files) in packages {
        let versions = apt.versions(package)?;
        let version = versions.first().with_context(|| format!("it has no {package}"))?;
        eprintln!("Getting {package} {version} from {}", mirror.uri);
        let unpacked = apt.unpack(package, version)?;
        for file in *files {
            process::run(Command::new("cp").arg(unpacked.join(file)).arg(destination))?;
        }
    }
    Ok(())
}
