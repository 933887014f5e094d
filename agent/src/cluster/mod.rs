//! What the cluster says: EndpointSlices, Services, nodes and their health servers, as [`ClusterEvent`]s for the core.
//!
//! | what | where |
//! | --- | --- |
//! | how the API server is reached, `Retry-After` | [`access`] |
//! | Kubernetes' objects as the core's | [`convert`] |
//! | list and watch (C10) | [`follow`], [`resources`] |
//! | consistent reads (C9, S5) | [`read`] |
//! | what the agent's own pod is like | [`own_pod`] |
//! | the list of nodes, and who is asked | [`nodes`] |
//! | which node an address is of | [`places`] |
//! | health servers (C1, C2, E6) | [`health`] |
//! | a mesh that takes the pod's connections (W8) | [`mesh`] |
//! | all of it, for one drain | [`observer`] |
//! | Events on the agent's own pod | [`pod_events`] |
//! | what `check` tries | [`preflight`](mod@preflight) |
//!
//! Nothing runs at rest, but for a read of the own pod at the start, and nothing here decides: what fails is told as it is.
//!
//! [`ClusterEvent`]: crate::core::cluster::ClusterEvent

pub mod access;
pub mod convert;
mod follow;
pub mod health;
mod mesh;
mod nodes;
mod observer;
mod own_pod;
pub mod places;
pub mod pod_events;
mod pod_in_drain;
mod preflight;
mod read;
mod refusal;
mod resources;
#[cfg(test)]
mod scripted_server;
mod sink;
#[cfg(test)]
mod tests;

pub use access::{Access, AccessError, namespace};
pub use convert::pod::{Container, Hook, OwnPod};
pub(crate) use nodes::targets;
pub use observer::{Observer, Told};
pub use places::{Place, Places};
pub use preflight::{HealthAnswer, Preflight, Tried, preflight};
pub(crate) use read::{nodes_by_metadata, nodes_selected};
pub(crate) use refusal::Refusal;
