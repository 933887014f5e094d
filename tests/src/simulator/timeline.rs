//! What happened, for a person to read.

use std::{collections::BTreeMap, time::Duration};

use lastsyn::core::clock::Monotonic;

use super::node::NodeId;

/// The lines of one drain, where they are asked for.
#[derive(Debug)]
pub(super) struct Timeline {
    lines: Option<Vec<(Monotonic, String)>>,
    /// What was last said of each thing that is asked again and again.
    said: BTreeMap<String, String>,
}

impl Timeline {
    pub(super) fn new(wanted: bool) -> Self {
        Self { lines: wanted.then(Vec::new), said: BTreeMap::new() }
    }

    /// Notes what happens; the words are made only where they are wanted.
    pub(super) fn note(&mut self, at: Monotonic, words: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push((at, words()));
        }
    }

    /// Notes what is said of something, where it is news.
    pub(super) fn note_news(&mut self, at: Monotonic, words: impl FnOnce() -> (String, String)) {
        if self.lines.is_some() {
            let (of, words) = words();
            if self.said.insert(of, words.clone()).as_ref() != Some(&words) {
                self.note(at, || words);
            }
        }
    }

    /// The lines, with the time since the hook's call.
    pub(super) fn text(self, hook: Monotonic) -> Vec<String> {
        let lines = self.lines.unwrap_or_default().into_iter();
        lines.map(|(at, words)| format!("{} {words}", offset(at, hook))).collect()
    }
}

/// Seconds since the hook's call.
pub(super) fn offset(at: Monotonic, hook: Monotonic) -> String {
    let seconds = |length: Duration| length.as_secs_f64();
    if at >= hook {
        format!("{:>+10.4} s", seconds(at.since(hook)))
    } else {
        format!("{:>10.4} s", -seconds(hook.since(at)))
    }
}

/// A node's name: a to z.
pub(super) fn name(node: NodeId) -> String {
    super::translate::node_name(node).to_string()
}
