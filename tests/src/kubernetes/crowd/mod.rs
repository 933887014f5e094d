//! Nodes by the hundred, simulated: each has an address, answers as a kube-proxy's health server and `healthCheckNodePort` do,
//! and has a watch of its own at the API server, whose bytes are counted and not read. What they show goes by one more watch, at
//! the pace of a real kube-proxy that nothing is wrong with: a sync at once, and a second from one to the next.

mod answers;
mod state;
mod watches;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use kube::config::Kubeconfig;
use rustix::{process::setpriority_process, thread::gettid};
use serde_json::json;
use tokio::{sync::oneshot, task::LocalSet};

pub use self::state::Counts;
use self::state::State;
use super::{
    Cluster,
    addresses::{CONTROL_PLANE_V4, CONTROL_PLANE_V6, hardware},
};
use crate::{End, Families, Host, Link, host::runtime, wait::await_condition};

/// The number of its wire, which no node has.
const NUMBER: u8 = 200;
/// For the nodes' watches to stand.
const SOON: Duration = Duration::from_mins(2);

/// The nodes. Dropped, they are gone.
#[derive(Debug)]
pub struct Crowd {
    host: Host,
    state: Arc<State>,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

// === impl Crowd ===

impl Crowd {
    /// Adds so many nodes to a cluster.
    ///
    /// # Errors
    ///
    /// When the API server does not take them, or they do not come up.
    pub fn join(cluster: &Cluster, nodes: u16) -> Result<Self> {
        let host = cluster.lab().host("crowd")?;
        let own = (Ipv4Addr::new(10, 30, 255, 254), Ipv6Addr::new(0xfd00, 0x30, 0, 0, 0, 0, 1, 1));
        let outside = cluster.outside();
        Link {
            ends: [
                End {
                    host: outside,
                    interface: "crowd",
                    v4: (CONTROL_PLANE_V4, 32),
                    v6: (CONTROL_PLANE_V6, 128),
                    hardware: hardware(NUMBER, 0, 0),
                },
                End {
                    host: &host,
                    interface: "eth0",
                    v4: (own.0, 32),
                    v6: (own.1, 128),
                    hardware: hardware(NUMBER, 0, 1),
                },
            ],
            families: Families::Dual,
            mtu: 1500,
        }
        .make()?;
        let (v4, v6) = own;
        outside.ip(&format!(
            "route add {v4} dev crowd\nroute add {v6} dev crowd\n\
             route add 10.30.0.0/15 via {v4} dev crowd onlink\nroute add fd00:30::/64 via {v6} dev crowd onlink\n"
        ))?;
        // Every address of the ranges is its own.
        host.ip(&format!(
            "route add {CONTROL_PLANE_V4} dev eth0\nroute add {CONTROL_PLANE_V6} dev eth0\n\
             route add default via {CONTROL_PLANE_V4} dev eth0 onlink\nroute add default via {CONTROL_PLANE_V6} dev eth0 onlink\n\
             route add local 10.30.0.0/15 dev lo\nroute add local fd00:30::/64 dev lo\n"
        ))?;
        for node in 0..nodes {
            register(cluster, node)?;
        }
        let state = Arc::new(State::default());
        let kubeconfig = cluster.kubeconfig();
        let read = move |state, kubeconfig: PathBuf| async move {
            // What nobody waits for stands back: on real nodes it would cost the ones that answer nothing.
            setpriority_process(Some(gettid()), 10)?;
            watches::read_all(state, &kubeconfig, nodes).await
        };
        let answer = |state, kubeconfig: PathBuf| async move { answers::give(state, &kubeconfig).await };
        let threads = vec![
            spawn(&host, "crowd's watches", (&state, kubeconfig), read)?,
            spawn(&host, "crowd", (&state, kubeconfig), answer)?,
        ];
        let crowd = Self { host, state, threads };
        await_condition("the nodes' watches", SOON, || {
            crowd.counts().watches.load(Ordering::Relaxed) >= u64::from(nodes)
        })?;
        Ok(crowd)
    }

    /// Where addresses of [`pod`](Self::pod) are its own.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// An address of a pod that is on none of the nodes.
    pub fn pod(number: u16) -> Ipv4Addr {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(10, 31, high, low)
    }

    /// What has been counted so far.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (end, thread) in self.threads.drain(..) {
            end.send(()).ok(); // it may have ended with an error
            if thread.join().is_err() {
                eprintln!("a thread of the crowd panicked");
            }
        }
    }
}

/// Works in a thread of its own until told to end.
fn spawn<W: Future<Output = Result<()>>>(
    host: &Host,
    name: &str,
    (state, kubeconfig): (&Arc<State>, &Path),
    work: impl FnOnce(Arc<State>, PathBuf) -> W + Send + 'static,
) -> Result<(oneshot::Sender<()>, JoinHandle<()>)> {
    let (end, ended) = oneshot::channel();
    let (state, kubeconfig) = (Arc::clone(state), kubeconfig.to_owned());
    let thread = host.spawn(name, move || {
        runtime().block_on(LocalSet::new().run_until(async {
            tokio::select! {
                worked = work(state, kubeconfig) => if let Err(error) = worked {
                    eprintln!("the crowd: {error:#}");
                },
                _ = ended => {}
            }
        }));
    })?;
    Ok((end, thread))
}

fn name(node: u16) -> String {
    format!("crowd-{node}")
}

fn addresses(node: u16) -> [IpAddr; 2] {
    let [high, low] = (node + 1).to_be_bytes();
    [Ipv4Addr::new(10, 30, high, low).into(), Ipv6Addr::new(0xfd00, 0x30, 0, 0, 0, 0, 0, node + 1).into()]
}

fn node_of(address: IpAddr) -> Option<u16> {
    let number = match address.to_canonical() {
        IpAddr::V4(address) => u16::from_be_bytes([address.octets()[2], address.octets()[3]]),
        IpAddr::V6(address) => *address.segments().last()?,
    };
    number.checked_sub(1)
}

fn register(cluster: &Cluster, node: u16) -> Result<()> {
    let name = name(node);
    cluster
        .api()
        .post("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}}}))?;
    let addresses = addresses(node).map(|address| json!({"type": "InternalIP", "address": address.to_string()}));
    cluster.api().patch(&format!("/api/v1/nodes/{name}/status"), &json!({"status": {"addresses": addresses}}))?;
    Ok(())
}

fn read(kubeconfig: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))
}
