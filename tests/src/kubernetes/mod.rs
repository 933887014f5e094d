//! A real Kubernetes on one machine: etcd, kube-apiserver and kube-controller-manager in one network namespace, three
//! nodes as namespaces with a real kube-proxy each, and pods as namespaces behind them.
//!
//! There is no kubelet: the lab creates Pods with the API, gives them their status, and ends them in the order in which a
//! kubelet does. What is wrong with a node is brought about by hand: a kube-proxy that stands still ([`KubeProxy::freeze`])
//! or is killed, a node without the API ([`Node::cut`]), a watch that stands still while others go on ([`WatchProxy`]).
//!
//! `cargo xtask setup --kubernetes` makes the programs.

mod access;
mod addresses;
mod api;
mod api_traffic;
mod binaries;
mod broken_agent;
mod certificates;
mod cluster;
mod control_plane;
mod crowd;
mod deployment;
mod endpoints;
mod envoy_pod;
mod fence;
pub mod keep;
mod kube_proxy;
mod kubeconfig;
mod kubelet;
mod kubelet_pod;
mod manifest;
mod node;
mod pod;
mod pod_template;
mod rule_writer;
mod rules;
mod scene;
mod service;
mod watch_proxy;
mod workload;

pub use self::{
    access::{Access, FenceRight, Right},
    addresses::CONTROL_PLANE_V4,
    api::{Api, Refused},
    api_traffic::{Amount, ApiTraffic},
    broken_agent::{ABSENT_IMAGE, Container, Fault, Form, Standing},
    cluster::{Cluster, ClusterConfig},
    crowd::{Counts, Crowd},
    deployment::Deployment,
    endpoints::Endpoint,
    envoy_pod::Shutdown,
    fence::Fence,
    kube_proxy::{KubeProxy, Mode, Timing},
    kubelet::{AGENT_IMAGE, Kubelet, WEB_IMAGE},
    kubelet_pod::{Health, KubeletPod},
    node::Node,
    pod::{KubePod, PodSpec},
    rule_writer::{RuleWriter, Writes},
    scene::{STAYS, Scene},
    service::{Service, ServiceKind, ServiceSpec},
    watch_proxy::WatchProxy,
    workload::{Ended, PORT, Stopping, Workload},
};
