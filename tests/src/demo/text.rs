//! Text for a terminal: lengths of time, lines of a width, colours.

use std::time::Duration;

use lastsyn::cli::words;

/// Colours, where the terminal has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Palette {
    pub(super) colours: bool,
}

/// A length of time as verdicts have it: `4.5 s`.
pub(super) fn seconds(time: Duration) -> String {
    words::seconds(millis(time))
}

/// Whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Breaks a text between words into lines of at most `width` characters, all but the first behind `indent`. A word that
/// is longer has a line of its own. A number and its unit stay together.
pub(super) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.trim_end_matches(|end: char| end.is_ascii_punctuation()) == "s" => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word),
        }
    }
    lines
}

/// Cuts a line off at `width` characters; what only colours them does not count.
pub(super) fn clip(line: &str, width: usize) -> String {
    let (mut clipped, mut shown, mut painting) = (String::new(), 0, false);
    for character in line.chars() {
        painting |= character == '\x1b';
        if painting || shown < width {
            clipped.push(character);
        }
        if painting {
            painting = character != 'm';
        } else {
            shown += 1;
        }
    }
    clipped
}

// === impl Palette ===

impl Palette {
    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// As it should be.
    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Not yet.
    pub(super) fn waiting(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// A loss.
    pub(super) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_not_cut_off() {
        let palette = Palette { colours: true };
        let line = format!("one {} three", palette.good("two"));
        assert_eq!(clip(&line, 5), format!("one {}", palette.good("t")));
        assert_eq!(clip(&line, 13), line);
    }

    #[test]
    fn lines_are_no_longer_than_the_width() {
        assert_eq!(wrap("one two three", 7, ""), ["one two", "three"]);
        assert_eq!(wrap("one incomprehensibly two", 8, ""), ["one", "incomprehensibly", "two"]);
        assert_eq!(wrap("after 2.5 s, or so", 11, ""), ["after", "2.5 s, or", "so"]);
        assert_eq!(wrap("one two three", 9, "  "), ["one two", "  three"]);
        assert!(wrap("", 8, "").is_empty());
    }
}
