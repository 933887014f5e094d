//! What a kubelet of the lab needs beside itself: containerd, runc, the plugins that give pods their network, and a static
//! shell for images. All of it comes from Debian.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{cache, debian_files};
use crate::process;

/// The newest containerd of a Debian release.
const NEW: (&str, &[debian_files::Wanted<'static>]) =
    ("trixie", &[("containerd", &["usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr"])]);

/// From the release before, whose programs run with an older C library too.
const OLD: (&str, &[debian_files::Wanted<'static>]) = (
    "bookworm",
    &[
        ("runc", &["usr/sbin/runc"]),
        ("containernetworking-plugins", &["usr/lib/cni/ptp", "usr/lib/cni/host-local", "usr/lib/cni/loopback"]),
        ("busybox-static", &["bin/busybox"]),
    ],
);

/// The directory of the programs, after they have been fetched where they were not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    if let Some(directory) = env::var_os(super::kubernetes::OWN_PROGRAMS) {
        return Ok(directory.into());
    }
    let directory = cache::directory()?.join("container-runtime");
    let stamp = format!("containerd of Debian {}, runc of Debian {}\n", NEW.0, OLD.0);
    if cache::stamp(&directory).as_ref() == Some(&stamp) {
        return Ok(directory);
    }
    let _lock = cache::lock()?;
    // Another run may have fetched them while this one waited.
    if cache::stamp(&directory).as_ref() != Some(&stamp) {
        cache::replace(&directory, &stamp, |destination| {
            for (suite, packages) in [NEW, OLD] {
                debian_files::fetch(suite, packages, destination)?;
            }
            ["containerd", "runc"].iter().try_for_each(|program| runs(&destination.join(program)))
        })?;
    }
    Ok(directory)
}

fn runs(program: &Path) -> Result<()> {
    process::read(Command::new(program).arg("--version"))
        .map(drop)
        .with_context(|| format!("the new {} does not run", program.display()))
}
