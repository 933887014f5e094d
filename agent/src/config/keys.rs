//! Every key, derived from the serialized default: its name in a file, its environment variable and its flag.

use std::sync::LazyLock;

use serde_json::Value;

use super::Config;

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    path: Vec<String>,
    name: String,
    variable: String,
    flag: String,
    default: String,
}

/// Every key, in the order of the sections' names.
pub fn all() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        flatten(&defaults(), &mut Vec::new(), &mut keys);
        keys
    });
    &KEYS
}

/// The default configuration as a tree.
#[expect(clippy::expect_used, reason = "the default is a constant, and a test serializes it")]
pub(super) fn defaults() -> Value {
    serde_json::to_value(Config::default()).expect("the default configuration has only text, numbers and lists")
}

fn flatten(tree: &Value, path: &mut Vec<String>, keys: &mut Vec<Key>) {
    // A section without keys of ours is a value: its names are the operator's.
    let Some(section) = tree.as_object().filter(|section| !section.is_empty()) else {
        keys.push(Key::new(path.clone(), tree));
        return;
    };
    for (name, child) in section {
        path.push(name.clone());
        flatten(child, path, keys);
        path.pop();
    }
}

pub(super) fn by_name(name: &str) -> Option<&'static Key> {
    all().iter().find(|key| key.name == name)
}

pub(super) fn by_variable(variable: &str) -> Option<&'static Key> {
    all().iter().find(|key| key.variable == variable)
}

pub(super) fn by_flag(flag: &str) -> Option<&'static Key> {
    all().iter().find(|key| key.flag == flag)
}

/// The names of a section's own keys and sections; of the whole configuration for the empty path.
pub(super) fn inside(section: &[&str]) -> Vec<String> {
    let mut names: Vec<_> = all()
        .iter()
        .filter(|key| key.path.iter().zip(section).filter(|(own, wanted)| own == wanted).count() == section.len())
        .filter_map(|key| key.path.get(..=section.len()))
        .map(|path| path.join("."))
        .collect();
    names.dedup();
    names
}

/// The candidate that `name` was most likely meant to be, by edit distance of the whole and of the last part alone.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const COMPARED: usize = 96;
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).take(COMPARED).collect()
    };
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    let wanted = plain(name);
    candidates.into_iter().min_by_key(|candidate| {
        let candidate = plain(candidate);
        let whole = strsim::damerau_levenshtein(&wanted, &candidate);
        // A key that is right but stands in the wrong section.
        let part = strsim::damerau_levenshtein(&last(&wanted), &last(&candidate)) + 2;
        // A key that was cut short.
        let prefix = if candidate.starts_with(&wanted) { 1 } else { usize::MAX };
        (whole.min(part).min(prefix), whole)
    })
}

// === impl Key ===

impl Key {
    fn new(path: Vec<String>, default: &Value) -> Self {
        let words: Vec<Vec<String>> = path.iter().map(|part| words(part)).collect();
        let variable = words.iter().map(|part| part.join("_").to_uppercase()).collect::<Vec<_>>().join("_");
        let flag = words.iter().map(|part| part.join("-")).collect::<Vec<_>>().join(".");
        let default = match default {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self { name: path.join("."), path, variable: format!("LASTSYN_{variable}"), flag, default }
    }

    /// Its name in a file: `drain.quietPeriod`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its environment variable: `LASTSYN_DRAIN_QUIET_PERIOD`.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// Its flag, without dashes in front: `drain.quiet-period`.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// Its default, as text.
    pub fn default(&self) -> &str {
        &self.default
    }

    pub(super) fn path(&self) -> &[String] {
        &self.path
    }
}

/// `quietPeriod` → `quiet`, `period`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_three_names() {
        let key = by_name("drain.quietPeriod").expect("a key");
        assert_eq!(
            (key.variable(), key.flag(), key.default()),
            ("LASTSYN_DRAIN_QUIET_PERIOD", "drain.quiet-period", "2s")
        );
        for key in all() {
            assert_eq!(by_variable(key.variable()).map(Key::name), Some(key.name()), "two keys share a variable");
            assert_eq!(by_flag(key.flag()).map(Key::name), Some(key.name()), "two keys share a flag");
        }
    }

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        let names = || all().iter().map(Key::name);
        for (wrong, right) in [
            ("drain.quitePeriod", "drain.quietPeriod"),
            ("drain.quiet_period", "drain.quietPeriod"),
            ("quietPeriod", "drain.quietPeriod"),
            ("server.quietPeriod", "drain.quietPeriod"),
            ("drain.maxwait", "drain.maxWait"),
            ("listener.watch", "listeners.watch"),
            ("sensor.stratgey", "sensor.strategy"),
        ] {
            assert_eq!(nearest(wrong, names()), Some(right), "{wrong}");
        }
        assert!(nearest(&"x".repeat(1 << 20), names()).is_some());
    }

    #[test]
    fn a_section_knows_what_is_inside() {
        assert_eq!(inside(&["server"]), ["server.address", "server.hookFrom", "server.socket"]);
        let sections = [
            "afterEnd",
            "drain",
            "fence",
            "listeners",
            "loadBalancer",
            "log",
            "mode",
            "pod",
            "proxy",
            "readiness",
            "report",
            "routing",
            "sensor",
            "server",
            "state",
        ];
        assert_eq!(inside(&[]), sections);
    }
}
