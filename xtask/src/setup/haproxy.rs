//! A newer HAProxy beside the machine's own, for the tests that drain one of each. It runs with the C library and the other
//! libraries of its own Debian release, so that nothing of them gets into the system.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{cache, debian_files};
use crate::process;

/// The suite, and the release of HAProxy that it has.
const SUITE: &str = "trixie";
const RELEASE: &str = "3.0";

/// Where each architecture's libraries are, and its dynamic linker.
const ARCHITECTURES: [(&str, &str, &str); 2] = [
    ("x86_64", "usr/lib/x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    ("aarch64", "usr/lib/aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
];

/// What HAProxy is linked with, and what that is linked with.
const LIBRARIES: [(&str, &[&str]); 12] = [
    ("libc6", &["libc.so.6", "libm.so.6"]),
    ("libcrypt1", &["libcrypt.so.1"]),
    ("libgcc-s1", &["libgcc_s.so.1"]),
    ("libjemalloc2", &["libjemalloc.so.2"]),
    ("liblua5.4-0", &["liblua5.4.so.0"]),
    ("libopentracing-c-wrapper0t64", &["libopentracing-c-wrapper.so.0"]),
    ("libopentracing1", &["libopentracing.so.1"]),
    ("libpcre2-8-0", &["libpcre2-8.so.0"]),
    ("libssl3t64", &["libssl.so.3", "libcrypto.so.3"]),
    ("libstdc++6", &["libstdc++.so.6"]),
    ("libzstd1", &["libzstd.so.1"]),
    ("zlib1g", &["libz.so.1"]),
];

/// The program, after it has been fetched where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("haproxy-{RELEASE}"));
    let program = directory.join("haproxy");
    let stamp = format!("HAProxy {RELEASE} of Debian {SUITE}, with its libraries\n");
    let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp) && program.is_file();
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have fetched it while this one waited.
        if !is_there() {
            cache::replace(&directory, &stamp, fetch)?;
        }
    }
    Ok(program)
}

fn fetch(content: &Path) -> Result<()> {
    let Some((_, directory, linker)) = ARCHITECTURES.iter().find(|(name, ..)| *name == env::consts::ARCH) else {
        bail!("where Debian keeps the libraries of {} is not known: add it to ARCHITECTURES", env::consts::ARCH);
    };
    let at = |file: &&str| format!("{directory}/{file}");
    let files: Vec<(&str, Vec<String>)> = LIBRARIES
        .iter()
        .map(|(package, files)| {
            let own = if *package == "libc6" { Some(at(linker)) } else { None };
            (*package, files.iter().map(at).chain(own).collect())
        })
        .chain([("haproxy", vec!["usr/sbin/haproxy".to_owned()])])
        .collect();
    let names: Vec<(&str, Vec<&str>)> =
        files.iter().map(|(package, files)| (*package, files.iter().map(String::as_str).collect())).collect();
    let wanted: Vec<debian_files::Wanted<'_>> =
        names.iter().map(|(package, files)| (*package, files.as_slice())).collect();
    let libraries = content.join("libraries");
    fs::create_dir(&libraries).with_context(|| format!("cannot make {}", libraries.display()))?;
    debian_files::fetch(SUITE, &wanted, &libraries)?;

    let program = content.join("haproxy");
    let script = format!(
        "#!/bin/sh\n# HAProxy with the libraries beside it.\nhere=$(dirname \"$(readlink -f \"$0\")\")/libraries\n\
         exec \"$here/{linker}\" --library-path \"$here\" \"$here/haproxy\" \"$@\"\n"
    );
    fs::write(&program, script).with_context(|| format!("cannot write {}", program.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).context("cannot make the program executable")?;
    let said = process::read(Command::new(&program).arg("-v")).context("the new HAProxy does not run")?;
    if !said.contains(&format!("HAProxy version {RELEASE}.")) {
        bail!("Debian {SUITE} has another HAProxy than {RELEASE}: `{}`", said.lines().next().unwrap_or_default());
    }
    Ok(())
}
