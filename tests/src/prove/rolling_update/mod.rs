//! A rolling update: many pods of a Service are replaced in waves, while slices that have nothing to do with them are
//! written all the time, so that every node always has something to write.

mod churn;
mod fleet;
pub mod proof;
mod round;

pub use self::{
    fleet::Drained,
    round::{Plan, Round},
};
