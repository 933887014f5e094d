//! The image, as an OCI archive, without a builder or a daemon: one layer with the program in it. Nothing in it tells when or by
//! whom it was made, so that its digest is that of what is in it.
//!
//! The format: <https://github.com/opencontainers/image-spec>, version 1.

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::{binary::Target, digest};

/// Where the program is. The search path of the image has it.
const PROGRAM: &str = "usr/bin/lastsyn";

/// Who runs it where nobody says otherwise: a user without rights. The agent's capabilities are of use to user 0 alone, which
/// whoever gives them has to name.
pub(super) const USER: &str = "65532:65532";

/// An image's parts, by their digests.
struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

/// Writes the image of a program.
pub(super) fn write(program: &Path, target: &Target, archive: &Path) -> Result<()> {
    let program = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let image = assemble(&program, target.platform, env!("CARGO_PKG_VERSION"))?;
    fs::write(archive, image).with_context(|| format!("cannot write {}", archive.display()))
}

pub(super) fn assemble(program: &[u8], architecture: &str, version: &str) -> Result<Vec<u8>> {
    let content = layer(program)?;
    let layer = Blob::new(compress(&content)?);
    let labels = json!({
        "org.opencontainers.image.title": "lastsyn",
        "org.opencontainers.image.description":
            "Holds a Kubernetes preStop hook exactly until the last new connection has arrived",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.version": version,
    });
    let configuration = Blob::json(&json!({
        "architecture": architecture, "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["lastsyn"], "Cmd": ["run"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest::of(&content))]},
    }));
    let manifest = Blob::json(&json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": configuration.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar+gzip")],
        "annotations": labels,
    }));
    let mut listed = manifest.descriptor("application/vnd.oci.image.manifest.v1+json");
    if let Some(listed) = listed.as_object_mut() {
        listed.insert("annotations".to_owned(), json!({"org.opencontainers.image.ref.name": version}));
        listed.insert("platform".to_owned(), json!({"architecture": architecture, "os": "linux"}));
    }
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [listed],
    });

    let mut archive = Builder::new(Vec::new());
    add(&mut archive, "oci-layout", 0o644, json!({"imageLayoutVersion": "1.0.0"}).to_string().as_bytes())?;
    add(&mut archive, "index.json", 0o644, index.to_string().as_bytes())?;
    for Blob { digest, bytes } in [&layer, &configuration, &manifest] {
        add(&mut archive, &format!("blobs/sha256/{digest}"), 0o644, bytes)?;
    }
    archive.into_inner().context("cannot end the archive")
}

/// The root directory: the program, and where it puts its socket, which any user may.
fn layer(program: &[u8]) -> Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    for (directory, mode) in [("run", 0o755), ("run/lastsyn", 0o1777), ("usr", 0o755), ("usr/bin", 0o755)] {
        let mut header = header(EntryType::Directory, mode, 0);
        layer.append_data(&mut header, format!("{directory}/"), [].as_slice()).context("cannot add a directory")?;
    }
    add(&mut layer, PROGRAM, 0o755, program)?;
    layer.into_inner().context("cannot end the layer")
}

fn add(archive: &mut Builder<Vec<u8>>, name: &str, mode: u32, content: &[u8]) -> Result<()> {
    let mut header = header(EntryType::Regular, mode, content.len());
    archive.append_data(&mut header, name, content).with_context(|| format!("cannot add {name}"))
}

/// Of no time and of nobody but user 0.
fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).context("cannot compress the layer")
}

// === impl Blob ===

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: digest::of(&bytes), bytes }
    }

    fn json(content: &Value) -> Self {
        Self::new(content.to_string().into_bytes())
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.bytes.len()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_program_gives_the_same_image_and_another_another() {
        let image = |program: &str| assemble(program.as_bytes(), "amd64", "1.0.0").unwrap();
        assert_eq!(digest::of(&image("program")), digest::of(&image("program")));
        assert_ne!(digest::of(&image("program")), digest::of(&image("programs")));
    }

    /// By a tool of others, which `cargo xtask setup` gets.
    #[test]
    fn umoci_unpacks_what_is_in_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("image.tar");
        fs::write(&archive, assemble(b"the program", "arm64", "1.2.3").unwrap()).unwrap();

        let root = super::super::trial::unpack(&archive, directory.path()).unwrap();
        assert_eq!(fs::read(root.join(PROGRAM)).unwrap(), b"the program");
        let mut found: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, ["run", "usr"]);
        let mode = |path: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777
        };
        assert_eq!([mode(PROGRAM), mode("run/lastsyn")], [0o755, 0o1777]);
    }
}
