//! The last pod of its node behind a Service with the policy `Local`, and a load balancer that goes on sending to the node for
//! seconds after the pod was deleted.

pub mod proof;
mod round;
mod side;

pub use self::{
    round::{Plan, Round},
    side::Side,
};
