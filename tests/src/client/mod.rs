//! Clients: one connection, a connection that stays, and a pace of connections that nothing slows down.

mod attempt;
mod connection;
mod keep_alive;
mod paced;
mod summary;

pub use attempt::{Attempt, Outcome, connect_from, connect_once};
pub use connection::Connection;
pub use keep_alive::{KeepAlive, Kept, Version};
pub use paced::PacedClient;
pub use summary::Summary;
