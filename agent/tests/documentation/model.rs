//! The configuration's model as its sources have it: every field with its type and its comment. The comments are the
//! reference, so that nobody writes it twice.

use std::{collections::BTreeMap, fs, io};

use crate::markdown::root;

/// A field of a struct, or a variant of an enum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    /// As a file names it: `quietPeriod`, `auto`.
    pub(crate) name: String,
    /// A field's type as written.
    pub(crate) kind: String,
    /// Its comment, in one line.
    pub(crate) comment: String,
}

/// A struct or an enum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    pub(crate) comment: String,
    pub(crate) is_enum: bool,
    pub(crate) members: Vec<Member>,
}

/// Every public struct and enum of `agent/src/config`, by its name.
pub(crate) fn items() -> io::Result<BTreeMap<String, Item>> {
    let mut items = BTreeMap::new();
    for entry in fs::read_dir(root().join("agent/src/config"))? {
        let path = entry?.path();
        if path.is_file() {
            read(&fs::read_to_string(path)?, &mut items);
        }
    }
    Ok(items)
}

/// rustfmt decides how the lines look.
fn read(source: &str, items: &mut BTreeMap<String, Item>) {
    let (mut comment, mut open): (Vec<&str>, Option<(String, Item)>) = (Vec::new(), None);
    for line in source.lines() {
        let text = line.trim_start();
        if let Some(words) = text.strip_prefix("/// ") {
            comment.push(words);
            continue;
        }
        // Attributes stand between a comment and what it is about.
        if text.starts_with('#') {
            continue;
        }
        if line == "}" {
            items.extend(open.take());
        } else if let Some((_, item)) = &mut open {
            item.members.extend(member(text, item.is_enum, &comment));
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            open = Some((name.to_owned(), Item { comment: comment.join(" "), ..Item::default() }));
        } else if let Some(name) = line.strip_prefix("pub enum ").and_then(|rest| rest.strip_suffix(" {")) {
            open = Some((name.to_owned(), Item { comment: comment.join(" "), is_enum: true, ..Item::default() }));
        }
        comment.clear();
    }
}

fn member(text: &str, of_enum: bool, comment: &[&str]) -> Option<Member> {
    let text = text.strip_suffix(',')?;
    let comment = comment.join(" ");
    if of_enum {
        // A variant with data is not a word of its own: its comment says what is written.
        let plain = text.chars().all(char::is_alphanumeric);
        return plain.then(|| Member { name: text.to_lowercase(), kind: String::new(), comment });
    }
    let (name, kind) = text.strip_prefix("pub ")?.split_once(": ")?;
    Some(Member { name: camel(name), kind: kind.to_owned(), comment })
}

/// `quiet_period` → `quietPeriod`, as the fields are renamed.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}

#[test]
fn fields_and_variants_are_read_with_their_comments() {
    let mut items = BTreeMap::new();
    read(
        "/// `x`: a section.\npub struct X {\n    /// One.\n    /// Two.\n    #[serde(with = \"y\")]\n    pub long_name: \
         Y,\n    hidden: Y,\n}\npub enum Y {\n    /// First.\n    #[default]\n    Auto,\n    Other(u8),\n}\n",
        &mut items,
    );
    let field = &items["X"].members[0];
    assert_eq!((field.name.as_str(), field.kind.as_str(), field.comment.as_str()), ("longName", "Y", "One. Two."));
    assert_eq!((items["X"].comment.as_str(), items["X"].members.len()), ("`x`: a section.", 1));
    assert_eq!((items["Y"].members[0].name.as_str(), items["Y"].members.len()), ("auto", 1));
}
