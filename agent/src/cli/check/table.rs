//! The table that `check` prints.

use std::fmt;

/// All lines.
pub(super) struct Table(pub(super) Vec<Line>);

/// One thing that was looked at.
pub(super) struct Line {
    mark: Mark,
    what: &'static str,
    found: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Ok,
    Note,
    Warning,
    Failure,
}

impl Line {
    /// As it should be.
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { mark: Mark::Ok, what, found: found.into(), advice: None }
    }

    /// Worth knowing.
    pub(super) fn note(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { mark: Mark::Note, what, found: found.into(), advice: Some(advice.into()) }
    }

    /// The agent runs, but its verdicts are weaker or its drains longer.
    pub(super) fn warning(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { mark: Mark::Warning, what, found: found.into(), advice: Some(advice.into()) }
    }

    /// The agent does not run like this.
    pub(super) fn failure(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { mark: Mark::Failure, what, found: found.into(), advice: Some(advice.into()) }
    }
}

impl Table {
    /// Whether the agent cannot run.
    pub(super) fn failed(&self) -> bool {
        self.0.iter().any(|line| line.mark == Mark::Failure)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|line| line.what.len()).max().unwrap_or(0);
        for (index, line) in self.0.iter().enumerate() {
            let mark = match line.mark {
                Mark::Ok => "ok  ",
                Mark::Note => "note",
                Mark::Warning => "warn",
                Mark::Failure => "FAIL",
            };
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{mark}  {:width$}  {}", line.what, line.found)?;
            if let Some(advice) = &line.advice {
                write!(f, "\n{:indent$}-> {advice}", "", indent = width + 8)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_what_to_do_and_decides_the_exit_code() {
        let fine = Table(vec![Line::ok("kernel", "Linux 6.18"), Line::warning("tcx", "none", "upgrade")]);
        assert!(!fine.failed());
        assert_eq!(fine.to_string(), "ok    kernel  Linux 6.18\nwarn  tcx     none\n              -> upgrade");
        assert!(Table(vec![Line::failure("server", "in use", "choose another port")]).failed());
    }
}
