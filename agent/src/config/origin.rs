//! Where a setting was said, so that every complaint can point there.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: the default.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// This environment variable.
    Environment(String),
    /// This flag, dashes included.
    Flag(String),
}

/// What named the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOrigin {
    /// `--config`.
    Flag,
    /// `LASTSYN_CONFIG`.
    Environment,
}

/// A key with its value and who said it, as it is shown to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `drain.quietPeriod`.
    pub key: String,
    /// As text.
    pub value: String,
    /// Who said it.
    pub origin: Origin,
}

/// The origin of every key that is not at its default.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(BTreeMap<String, Origin>);

// === impl Origin ===

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

impl fmt::Display for FileOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "--config",
            Self::Environment => super::FILE_VARIABLE,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.key, self.value, self.origin)
    }
}

// === impl Origins ===

impl Origins {
    pub(super) fn of(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }

    pub(super) fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }

    /// The keys that somebody set and whose names begin like this.
    pub(super) fn set_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |key| key.starts_with(prefix))
    }

    #[expect(clippy::unnecessary_box_returns, reason = "errors hold it boxed, so that results stay small")]
    pub(super) fn setting(&self, key: &str, value: impl fmt::Display) -> Box<Setting> {
        Box::new(Setting { key: key.to_owned(), value: shorten(&value.to_string()), origin: self.of(key) })
    }
}

/// Cuts text that somebody else wrote to a length that still makes a readable line.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
