//! One layer over the other: the tree of values, and who said each.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    Config, ConfigError,
    keys::{self, Key},
    origin::{Origin, Origins, shorten},
};

/// The configuration while it is put together.
pub(super) struct Layers {
    tree: Value,
    origins: Origins,
}

impl Layers {
    pub(super) fn defaults() -> Self {
        Self { tree: keys::defaults(), origins: Origins::default() }
    }

    /// Lays a file's tree over what is there.
    pub(super) fn overlay(&mut self, file: Value, path: &Path) -> Result<(), ConfigError> {
        let origin = Origin::File(path.to_owned());
        match file {
            Value::Object(root) => self.section(root, &mut Vec::new(), &origin),
            // Empty, or nothing but comments.
            Value::Null => Ok(()),
            _ => Err(ConfigError::NotAMapping { path: path.to_owned() }),
        }
    }

    fn section(
        &mut self,
        section: Map<String, Value>,
        at: &mut Vec<String>,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        for (name, value) in section {
            at.push(name);
            let full = at.join(".");
            if let Some(key) = keys::by_name(&full) {
                self.set(key, value, origin.clone());
            } else {
                let inside = keys::inside(&at.iter().map(String::as_str).collect::<Vec<_>>());
                match value {
                    _ if inside.is_empty() => return Err(unknown(&full, origin.clone())),
                    Value::Object(section) => self.section(section, at, origin)?,
                    // A section whose keys are all commented out.
                    Value::Null => {}
                    _ => {
                        let (key, inside) = (full, inside.join(", "));
                        return Err(ConfigError::NotASection { key, origin: origin.clone(), inside });
                    }
                }
            }
            at.pop();
        }
        Ok(())
    }

    /// Sets one key.
    pub(super) fn set(&mut self, key: &Key, value: Value, origin: Origin) {
        let mut place = &mut self.tree;
        for part in key.path() {
            // Every step is there: the keys were read off this tree.
            match place.get_mut(part) {
                Some(next) => place = next,
                None => return,
            }
        }
        *place = value;
        self.origins.set(key.name(), origin);
    }

    /// Reads the finished tree, once.
    pub(super) fn build(self) -> Result<(Config, Origins), ConfigError> {
        match serde_path_to_error::deserialize(&self.tree) {
            Ok(config) => Ok((config, self.origins)),
            Err(error) => Err(self.blame(&error)),
        }
    }

    fn blame(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
        let path = error.path().to_string();
        let key = keys::all()
            .iter()
            .map(Key::name)
            .find(|name| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])));
        let name = key.unwrap_or(&path);
        let value = name.split('.').try_fold(&self.tree, |tree, part| tree.get(part));
        let value = match value {
            Some(Value::String(text)) if !text.is_empty() => shorten(text),
            Some(value) => shorten(&value.to_string()),
            None => String::new(),
        };
        ConfigError::Value { setting: self.origins.setting(name, value), why: error.inner().to_string() }
    }
}

fn unknown(name: &str, origin: Origin) -> ConfigError {
    let names = keys::all().iter().map(|key| key.name().to_owned());
    let sections = keys::inside(&[]);
    // A name without a dot may be a section as well as a key that lost its section.
    let candidates: Vec<String> = sections.into_iter().filter(|_| !name.contains('.')).chain(names).collect();
    let nearest = keys::nearest(name, candidates.iter().map(String::as_str)).unwrap_or_default().to_owned();
    ConfigError::UnknownKey { key: shorten(name), origin, nearest }
}
