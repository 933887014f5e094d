//! The path of a file, where the empty text stands for none.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer; a path that is not UTF-8.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().unwrap_or(Path::new("")).serialize(serializer)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// Something that is no text.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = Option::<PathBuf>::deserialize(deserializer)?;
    Ok(path.filter(|path| !path.as_os_str().is_empty()))
}
