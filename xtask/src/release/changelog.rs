//! What is new in a version stands in the changelog before it is one.

use anyhow::{Result, bail, ensure};

/// The file, below the repository's root.
pub(super) const FILE: &str = "CHANGELOG.md";

/// Where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// In the section of what has no version yet.
    Unreleased,
    /// In the version's own, with its date.
    Dated,
}

/// The section that tells of a version.
pub(super) fn section(changelog: &str, version: &str) -> Result<Section> {
    let mut sections =
        changelog.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")));
    let own = sections.clone().find(|(title, _)| title.split(" - ").next() == Some(version));
    let (found, text) = if let Some((title, text)) = own {
        let date = title.split_once(" - ").map(|(_, date)| date).unwrap_or_default();
        ensure!(is_date(date), "{FILE}: the section `{title}` has no date: `## {version} - YYYY-MM-DD`");
        (Section::Dated, text)
    } else if let Some((_, text)) = sections.find(|(title, _)| *title == "Unreleased") {
        (Section::Unreleased, text)
    } else {
        bail!("{FILE} has no section `## Unreleased`, and none of {version}");
    };
    ensure!(
        text.lines().any(|line| line.starts_with("- ")),
        "{FILE}: the section that is to tell of {version} has no entry"
    );
    Ok(found)
}

/// A day of the calendar, as `2026-02-28`.
fn is_date(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok_and(|date| date.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_of_below_unreleased_or_in_a_section_with_a_date() {
        let told = |text: &str| section(&format!("# Changelog\n\n{text}"), "1.2.3").map_err(|error| error.to_string());
        assert_eq!(told("## Unreleased\n\n### Added\n\n- A thing.\n"), Ok(Section::Unreleased));
        assert_eq!(told("## Unreleased\n\n## 1.2.3 - 2028-02-29\n\n- A thing.\n"), Ok(Section::Dated));
        for (text, error) in [
            ("## Unreleased\n\n### Added\n\n## 1.2.2 - 2026-01-01\n\n- Old.\n", "has no entry"),
            ("## 1.2.2 - 2026-01-01\n\n- Old.\n", "no section `## Unreleased`, and none of 1.2.3"),
            ("## Unreleased\n\n- A thing.\n\n## 1.2.3\n\n- A thing.\n", "has no date"),
            ("## 1.2.3 - soon\n\n- A thing.\n", "has no date"),
            ("## 1.2.3 - 2027-02-29\n\n- A thing.\n", "has no date"),
            ("## 1.2.3 - 2027-02-01\n\n### Added\n", "has no entry"),
        ] {
            let said = told(text).unwrap_err();
            assert!(said.contains(error), "{text:?}: {said}");
        }
    }
}
