//! A drain's course, for people: what the status shows of it while it runs.
//! It stands beside the decision, which does not know it.
//!
//! | what | where |
//! | --- | --- |
//! | what is kept of a drain while it runs. Pure | [`recorder`], [`bins`] |
//! | what is told of it: the format | [`course`] |

pub mod bins;
pub mod course;
pub mod recorder;

#[cfg(test)]
pub(crate) mod tests;

pub use course::Report;
pub use recorder::Recorder;
