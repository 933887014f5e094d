//! The documents of a text. What is not changed leaves as the bytes that it came as, with its comments and anchors.

use super::{error::InjectError, node::Node};

/// One document of the input, with its source.
#[derive(Debug)]
pub(super) struct Document<'a> {
    source: &'a str,
    pub(super) content: Node,
}

/// Reads the documents of a text.
///
/// # Errors
/// When it is empty, or one of them is no YAML.
pub(super) fn read(text: &str) -> Result<Vec<Document<'_>>, InjectError> {
    let options = serde_saphyr::options! {
        // kubectl reads `0444` and `yes` by YAML 1.1.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let mut line = 1;
    let mut documents = Vec::new();
    for (index, source) in split(text).into_iter().enumerate() {
        let content = serde_saphyr::from_str_with_options(source, options.clone())
            .map_err(|error| InjectError::Document { number: index + 1, line, error: Box::new(error) })?;
        line += source.matches('\n').count();
        documents.push(Document { source, content });
    }
    if documents.iter().all(|document| document.content == Node::Null) {
        return Err(InjectError::Empty);
    }
    Ok(documents)
}

/// A line that begins with `---` begins a document, wherever it is: content is indented, or YAML forbids it there.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut place, mut filled) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let is_marker =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_marker && filled {
            parts.extend(text.get(start..place));
            start = place;
        }
        // Comments and directives in front of the first marker are of the document behind it.
        filled |= is_marker || !(line.trim().is_empty() || line.starts_with(['#', '%']));
        place += line.len();
    }
    parts.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    parts
}

/// The text of documents, of which one has new content, and of further ones.
///
/// # Errors
/// When content cannot be written.
pub(super) fn write(documents: &[Document<'_>], changed: usize, further: &[Node]) -> Result<String, InjectError> {
    let mut text = String::new();
    for (index, document) in documents.iter().enumerate() {
        if index == changed {
            text.push_str(&heading(document.source));
            text.push_str(&yaml(&document.content)?);
        } else {
            text.push_str(document.source);
        }
    }
    for node in further {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("---\n");
        text.push_str(&yaml(node)?);
    }
    Ok(text)
}

/// The marker, directives and comments in front of a document's content.
fn heading(source: &str) -> String {
    let mut lines = source.split_inclusive('\n');
    let is_heading = |line: &&str| line.trim().is_empty() || line.starts_with(['#', '%']) || line.trim_end() == "---";
    let mut heading: String = lines.clone().take_while(is_heading).collect();
    // A marker with content, or with a comment, behind it.
    if lines.find(|line| !is_heading(line)).is_some_and(|line| line.starts_with("---")) {
        heading.push_str("---\n");
    }
    heading
}

fn yaml(node: &Node) -> Result<String, InjectError> {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: false,
        // A command's line stays one.
        folded_wrap_chars: 4096,
    };
    let mut text =
        serde_saphyr::to_string_with_options(node, options).map_err(|error| InjectError::Write(Box::new(error)))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_markers_and_nowhere_else() {
        for parts in [
            vec!["a: 1\n", "---\nb: 2\n"],
            vec!["# first\n---\na: 1\n", "--- # second\nb: |\n  ---\n  c\n", "---\n"],
            vec!["%YAML 1.2\n---\na: 1\n...\n", "---\r\nb: 2\r\n", "---"],
            vec!["---\na: '---'\n--- x: 1\n"],
            vec!["a: |\n ----\n"],
        ] {
            // `--- x: 1` is a marker with content behind it.
            let text = parts.concat();
            let cut = split(&text);
            assert_eq!(cut.concat(), text);
            if !text.contains("--- x") {
                assert_eq!(cut, parts);
            }
        }
        assert_eq!(split(""), Vec::<&str>::new());
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let text = "a: {mode: 0444, on: yes, quoted: \"yes\", octal: '0444', big: 1e3, none: ~, empty: '', list: [], map: {}}\n\
                    b: [-1, 1.5, 'a: b', \"line\\nline\\n\", '# no comment', ' blank ', '2026-12-01', '1_000', '0x1f']\n";
        let read_one = |text: &str| read(text).expect("YAML").remove(0).content;
        let content = read_one(text);
        assert_eq!(content.at(&["a", "mode"]), Some(&Node::Unsigned(0o444)));
        assert_eq!(content.at(&["a", "quoted"]), Some(&Node::text("yes")));
        let written = yaml(&content).expect("written");
        assert_eq!(read_one(&written), content, "{written}");
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_its_place() {
        for (text, told) in [
            ("a: 1\n---\nb: [1\n", "document 2, from line 2 on"),
            ("a: 1\na: 2\n", "document 1"),
            ("a: *nobody\n", "document 1"),
            ("", "empty"),
            ("# nothing\n---\n", "empty"),
        ] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
