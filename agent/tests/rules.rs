//! `docs/rules.md` is true: each rule of the design has a row, and the files, items and tests of the rows exist.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// Every rule of the design. A rule that nothing in the repository holds yet has a row with empty cells, and is told
/// apart here, so that filling the row is not forgotten.
const RULES: [&str; 39] = [
    "E1", "E2", "E2a", "E3", "E4", "E5", "E6", "W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "C1", "C2", "C3", "C4",
    "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8",
    "S9", "S10",
];

const WITHOUT_A_PLACE_YET: [&str; 2] = ["S6", "S8"];

struct Row {
    rule: String,
    says: String,
    held_by: Vec<String>,
    tests: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn table() -> io::Result<Vec<Row>> {
    let text = fs::read_to_string(root().join("docs/rules.md"))?;
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let rows = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    rows.filter(|cells| cells.get(1) != Some(&"rule"))
        .map(|cells| {
            let ["", rule, says, held_by, tests, ""] = cells.as_slice() else {
                return Err(io::Error::other(format!("not four cells: {cells:?}")));
            };
            let (rule, says) = ((*rule).to_owned(), (*says).to_owned());
            Ok(Row { rule, says, held_by: quoted(held_by), tests: quoted(tests) })
        })
        .collect()
}

/// The text of every Rust file below a directory.
fn rust(directory: &Path, into: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            rust(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(())
}

/// Whether the text defines a function or a type of this name.
fn defines(text: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "const"].into_iter().any(|kind| {
        text.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
            let after = text[at + found.len()..].chars().next();
            after.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

/// Whether the text has a test of this name: with the attribute, or made by a macro of the model check.
fn tests(text: &str, name: &str) -> bool {
    defines(text, name) || text.contains(&format!("holds!({name},")) || text.contains(&format!("holds!(\n    {name},"))
}

#[test]
fn every_rule_has_one_row() {
    let rows: Vec<_> = table().unwrap().into_iter().map(|row| row.rule).collect();
    assert_eq!(rows, RULES);
}

#[test]
fn every_row_names_a_file_with_its_items() {
    for Row { rule, says, held_by, .. } in table().unwrap() {
        assert!(!says.is_empty(), "{rule} says nothing");
        let has_place = !WITHOUT_A_PLACE_YET.contains(&rule.as_str());
        assert_eq!(!held_by.is_empty(), has_place, "{rule}");
        let mut file: Option<(String, String)> = None;
        let mut items = 0;
        for part in held_by {
            if Path::new(&part).extension().is_some_and(|extension| extension == "rs") {
                let path = if part.starts_with("agent/") {
                    root().join(&part)
                } else {
                    root().join("agent/src/core").join(&part)
                };
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{rule}: {}: {error}", path.display()));
                file = Some((part, text));
            } else {
                let (name, text) = file.as_ref().unwrap_or_else(|| panic!("{rule}: `{part}` stands before its file"));
                assert!(defines(text, &part), "{rule}: {name} has no `{part}`");
                items += 1;
            }
        }
        assert!(items > 0 || !has_place, "{rule}: a file without an item");
    }
}

#[test]
fn every_row_names_tests_that_exist() {
    let mut text = String::new();
    for directory in ["agent/src", "agent/tests", "tests/tests"] {
        rust(&root().join(directory), &mut text).unwrap();
    }
    for Row { rule, tests: named, .. } in table().unwrap() {
        let has_place = !WITHOUT_A_PLACE_YET.contains(&rule.as_str());
        assert_eq!(!named.is_empty(), has_place, "{rule}");
        for name in &named {
            assert!(tests(&text, name), "{rule}: there is no test `{name}`");
        }
        let prefix = format!("{}_", rule.to_lowercase());
        assert!(!has_place || named.iter().any(|name| name.starts_with(&prefix)), "{rule}: no test has its name");
    }
}

#[test]
fn no_test_carries_the_name_of_a_rule_that_is_not() {
    let mut text = String::new();
    for directory in ["agent/src", "agent/tests", "tests/tests"] {
        rust(&root().join(directory), &mut text).unwrap();
    }
    let rules: BTreeSet<String> = RULES.iter().map(|rule| rule.to_lowercase()).collect();
    for name in text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next()) {
        let first = name.split('_').next().unwrap_or_default();
        let looks_like_one = name.contains('_')
            && first.starts_with(['e', 'w', 'c', 's'])
            && first[1..].starts_with(|next: char| next.is_ascii_digit());
        assert!(!looks_like_one || rules.contains(first), "`{name}`");
    }
}
