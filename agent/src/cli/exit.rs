//! Exit codes, in one place.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done. For `drain`: every completed hold, with or without a verdict.
    Done,
    /// What the command was for did not happen; standard error says what failed.
    Failed,
    /// A wrong argument or configuration; standard error says which. `drain` holds to its bound first.
    Usage,
    /// `drain --strict`: the hold ended at the bound, the agent's or the hook's own.
    Bound,
    /// `drain --strict`: no agent was ever reached.
    Unreached,
}

/// The codes, as `--help` shows them.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  failed; standard error says what
  2  wrong arguments or configuration; standard error says which
  3  drain --strict: ended at the bound
  4  drain --strict: no agent was ever reached";

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Bound => 3,
            Self::Unreached => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
