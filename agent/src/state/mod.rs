//! The state file: the courses of the last drains, kept for the agent that comes after this one. People read it; nothing is decided by
//! it, and whatever is wrong with it or with its file system costs a drain nothing.
//!
//! | what | where |
//! | --- | --- |
//! | what is in it, as text. Pure | [`content`] |
//! | read, and written as a whole or not at all | [`mod@file`] |
//! | the thread that does so, so that a file system that hangs keeps nobody waiting | [`keeper`] |

pub mod content;
pub mod file;
pub mod keeper;

pub use content::State;
pub use keeper::Keeper;
