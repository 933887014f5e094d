//! A drain's course, for people: what the status shows of it while it runs, what `GET /v1/report` answers, what the agent logs in
//! one line, what `lastsyn report` shows. It stands beside the decision, which does not know it.
//!
//! | what | where |
//! | --- | --- |
//! | what is kept of a drain while it runs. Pure | [`recorder`], `bins` |
//! | what is told of it: the format | [`course`] |
//! | as one line that a container runtime does not split | `fit` |
//! | found in any log file | [`find`] |
//! | as text, and as a page | [`text`], [`html`] |
//! | what a fixed sleep would have done | [`sleeps`] |

mod bins;
pub mod course;
pub mod find;
mod fit;
pub mod html;
pub mod recorder;
pub mod sleeps;
pub mod text;

#[cfg(test)]
pub(crate) mod tests;

pub use course::{FORMAT, Report};
pub use fit::{LINE_LIMIT, line};
pub use recorder::Recorder;
