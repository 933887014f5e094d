//! The path of the unix socket, where the empty text stands for none.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserializer, Serializer, de};

/// `sun_path` of unix(7), less its closing zero.
const LONGEST: usize = 107;

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer; a path that is not UTF-8.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(path.as_deref().unwrap_or(Path::new("")), serializer)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// Something that is no text, or a path longer than a socket's can be.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    struct Visitor;

    impl de::Visitor<'_> for Visitor {
        type Value = Option<PathBuf>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the path of a unix socket, or \"\" for none")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<PathBuf>, E> {
            if text.len() > LONGEST {
                return Err(E::custom(format_args!("the path of a unix socket has at most {LONGEST} bytes")));
            }
            Ok((!text.is_empty()).then(|| text.into()))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<PathBuf>, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Visitor)
}
