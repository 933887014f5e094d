//! The configuration file: read whole, with a limit, and parsed.

use std::{fs::File, io::Read, path::Path};

use serde_json::Value;

use super::{ConfigError, origin::FileOrigin, text};

/// 1 MiB: what a `ConfigMap` can hold.
pub(super) const LARGEST: u64 = 1 << 20;

pub(super) fn read(path: &Path, named_by: FileOrigin) -> Result<String, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), named_by, error };
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes)
        .map_err(|error| ConfigError::NotUtf8 { path: path.to_owned(), at: error.utf8_error().valid_up_to() })
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Value, ConfigError> {
    text::document(text).map_err(|error| {
        let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
        ConfigError::Syntax { path: path.to_owned(), line, column, why: error.to_string() }
    })
}
