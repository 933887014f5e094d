//! `docs/troubleshooting.md` has every warning that the agent can log, and none that it cannot.

use std::{collections::BTreeSet, fs, path::Path};

use crate::markdown::root;

/// Where the sentences are made that are logged as they are.
const SENTENCES: [&str; 3] = ["config/grace.rs", "config/validate.rs", "config/validate/proxy.rs"];

/// A text as the page has it: what differs from time to time is `…`, and there are no backticks in it.
fn normal(text: &str) -> String {
    let mut normal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        normal.push_str(before);
        normal.push('…');
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    normal.push_str(rest);
    normal.replace('`', "").replace("\\\"", "\"")
}

/// The string literal that a text begins with, its continued lines put together.
fn literal(text: &str) -> Option<String> {
    let text = text.strip_prefix('"')?;
    let (mut literal, mut letters) = (String::new(), text.chars());
    loop {
        match letters.next()? {
            '"' => return Some(literal),
            '\\' => match letters.next()? {
                '\n' => letters = letters.as_str().trim_start().chars(),
                other => literal.extend(['\\', other]),
            },
            letter => literal.push(letter),
        }
    }
}

/// Every literal of a text, but those in comments.
fn literals(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let text = lines.join("\n");
    let (mut found, mut rest) = (Vec::new(), text.as_str());
    while let Some(at) = rest.find('"') {
        let Some(one) = literal(&rest[at..]) else { break };
        // Its end: a quote that no backslash stands before.
        let mut end = at + 1;
        while !rest[end..].starts_with('"') {
            end += if rest[end..].starts_with('\\') { 2 } else { rest[end..].chars().next().unwrap().len_utf8() };
        }
        found.push(one);
        rest = &rest[end + 1..];
    }
    found
}

fn of_the_sources(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            of_the_sources(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for call in text.split("tracing::warn!(").skip(1) {
            let call = call.split(");\n").next().unwrap().split("),\n").next().unwrap();
            let message = literals(call).pop().unwrap_or_else(|| panic!("{}: {call}", path.display()));
            // A sentence of `SENTENCES`, or nothing but another type's words, of which the page tells above its table.
            if !["{warning}", "{lacks}", "{}"].contains(&message.as_str()) {
                found.insert(normal(&message));
            }
        }
        if SENTENCES.iter().any(|file| path.ends_with(file)) {
            let sentences = literals(text).into_iter().filter(|text| text.len() > 60 && text.contains(": "));
            found.extend(sentences.map(|text| normal(&text)));
        }
    }
}

fn of_the_page() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(message, rest)| {
        let cells: Vec<_> = rest.split(" | ").collect();
        assert!(cells.len() == 2 && cells.iter().all(|cell| cell.len() > 10), "cause and fix of {message}");
        message.to_owned()
    })
    .collect()
}

#[test]
fn every_warning_has_its_entry_and_nothing_else_has() {
    let mut logged = BTreeSet::new();
    of_the_sources(&root().join("agent/src"), &mut logged);
    assert!(logged.len() > 30, "are they found at all? {logged:#?}");
    let listed = of_the_page();
    let documented: BTreeSet<_> = listed.iter().cloned().collect();
    let missing: Vec<_> = logged.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&logged).collect();
    assert!(missing.is_empty() && gone.is_empty(), "without an entry: {missing:#?}\nlogged no more: {gone:#?}");
    assert_eq!(listed.len(), documented.len(), "an entry is there twice");
}

#[test]
fn messages_are_read_as_they_are_logged() {
    assert_eq!(literals("%why, \"a `b` \\\n    c: {d:?} e\", \"x\""), ["a `b` c: {d:?} e", "x"]);
    assert_eq!(normal("a `b` c: {d:?} ({})"), "a b c: … (…)");
}
