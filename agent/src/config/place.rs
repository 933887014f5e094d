//! Where a server of the pod takes commands: `ADDRESS:PORT`, or `unix:PATH`.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::client::Candidate;

/// For `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub(super) fn serialize<S: Serializer>(place: &Candidate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

/// For `#[serde(with)]`.
///
/// # Errors
/// See [`BadCandidate`](crate::client::BadCandidate).
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Candidate, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}
