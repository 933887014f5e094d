//! The caller's side of the agent's HTTP server, as `lastsyn drain` and `lastsyn status` use it.

mod candidate;
mod exchange;

pub use self::{
    candidate::{BadCandidate, Candidate, usual},
    exchange::{Answer, CONNECT_TIMEOUT, Connection, ExchangeError, LONGEST_ANSWER, Request},
};
