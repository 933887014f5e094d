//! The chart, by Helm itself: every documented variant lints, renders, and is taken by a real API server; what it says of the
//! agent is what the agent reads; and its example drains on a real kubelet.

#![expect(clippy::indexing_slicing, reason = "what is missing fails the test")]

mod api_server;
mod documentation;
mod fence;
mod helm_test;
mod kubelet;
mod policies;
mod rendered;
mod rights;
mod variants;
