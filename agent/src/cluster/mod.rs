//! What the cluster says, and how it is asked.

pub mod convert;
