//! `mode`: whether drains are held, or terminations only watched.

use serde::{Deserialize, Serialize};

/// What the agent is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It answers the hook.
    #[default]
    Drain,
    /// It answers no hook, tells the server in the pod and the cluster nothing, and only measures how long new connections keep coming
    /// after the pod's termination has begun. A hook that asks it all the same holds to its own bound.
    Observe,
}
