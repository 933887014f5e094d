//! A cluster in one thread, without a clock: everything that happens to a drain, from a seed, as often as one likes.
//!
//! The world is an API server, each node's kube-proxy, the pod's kernel, clients, a load balancer and a fence. It drives the
//! agent's real core ([`lastsyn::core::drain::Core`]) and holds every verdict against what the nodes do at that moment and
//! for a while after, with the API standing still. Nothing here reads a clock or does I/O: a seed and a scenario are one
//! drain, the same on every machine.
//!
//! | what | where |
//! | --- | --- |
//! | what happens in a drain, and to what | `plan`; made by `scenario`, `cluster`, `rollout`, `faults` |
//! | API server, endpoint controller, kube-proxy, fence, load balancer | `api`, `controller`, `kube_proxy`, `routes`, `fence`, `balancer` |
//! | the pod's kernel and its clients | `pod`, `clients` |
//! | the agent: core, watches, requests | `agent`, `life`, `dialogue`, `observer`, `polling`, `translate` |
//! | the order of things | `world`, `schedule`, `chance` |
//! | the promises, and what a person reads of a broken one | `check`, `naive`, `shrink`, `timeline`, `words` |
//! | many drains | `campaign` |

#![expect(clippy::indexing_slicing, reason = "an index out of range is a fault of the simulator, and is to end it")]

mod agent;
mod api;
mod balancer;
mod campaign;
mod chance;
mod check;
mod clients;
mod cluster;
mod controller;
mod dialogue;
mod faults;
mod fence;
mod kube_proxy;
mod life;
mod naive;
mod node;
mod observer;
mod plan;
mod pod;
mod polling;
mod rollout;
mod routes;
mod scenario;
mod schedule;
mod shrink;
mod timeline;
mod translate;
mod words;
mod world;

pub use self::{
    campaign::{Campaign, Found, Summary},
    check::Failure,
    scenario::{Scenario, UnknownScenario},
    shrink::{Account, account},
    world::Rule,
};
