//! A flood of SYNs from forged sources, through the node like any client's.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::time::interval;

use crate::{
    World,
    host::runtime,
    raw::{Segment, Sender},
    world::{CLIENT_V4, CLIENT_V6, INTERFACE},
};

/// The node's interface on the client's wire.
const NODE_INTERFACE: &str = "client";
/// Often enough for an even flow.
const VOLLEYS_PER_SECOND: u32 = 200;

/// SYNs that nobody will ever complete. It ends when dropped.
#[derive(Debug)]
pub(super) struct Storm {
    sent: Arc<AtomicU64>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

// === impl Storm ===

impl Storm {
    /// Starts it: to each target in turn, each from a source of its own.
    ///
    /// # Errors
    ///
    /// When the scene has not the interfaces or takes no routes.
    pub(super) fn start(world: &World, targets: Vec<SocketAddr>, per_second: u32) -> Result<Self> {
        // The answers go to the client, which is no router and drops them without a word.
        world.node.ip(&format!(
            "route add 198.18.0.0/15 via {CLIENT_V4} dev {NODE_INTERFACE}\n\
             route add 2001:db8::/32 via {CLIENT_V6} dev {NODE_INTERFACE}\n"
        ))?;
        let hardware = [world.client.hardware_address(INTERFACE)?, world.node.hardware_address(NODE_INTERFACE)?];
        let sender = Sender::open(&world.client, INTERFACE)?;
        let (sent, end) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, ended) = (Arc::clone(&sent), Arc::clone(&end));
        let volley = usize::try_from(per_second.div_ceil(VOLLEYS_PER_SECOND))?;
        let thread = thread::Builder::new()
            .name("storm".to_owned())
            .spawn(move || runtime().block_on(blow(&sender, &targets, hardware, volley, &count, &ended)))
            .context("no thread could be started for the storm")?;
        Ok(Self { sent, end, thread: Some(thread) })
    }

    /// How many SYNs it has sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the storm's thread panicked");
        }
    }
}

async fn blow(
    sender: &Sender,
    targets: &[SocketAddr],
    [from, to]: [[u8; 6]; 2],
    volley: usize,
    sent: &AtomicU64,
    end: &AtomicBool,
) {
    let mut volleys = interval(Duration::from_secs(1) / VOLLEYS_PER_SECOND);
    let mut turn = targets.iter().cycle();
    let mut number = 0;
    while !end.load(Ordering::Relaxed) {
        volleys.tick().await;
        for target in turn.by_ref().take(volley) {
            let syn = Segment::syn(forged(target, number), *target).between(from, to);
            number = number.wrapping_add(1);
            // A full queue of the interface drops one, as a wire would.
            if sender.send(&syn).is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A source of its own for each number, in ranges for benchmarks and documentation (RFC 2544, RFC 3849).
fn forged(target: &SocketAddr, number: u32) -> SocketAddr {
    let low = number % 0x2_0000;
    let port = 1024 + u16::try_from(number % 60_000).unwrap_or_default();
    match target {
        SocketAddr::V4(_) => (Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) | low), port).into(),
        SocketAddr::V6(_) => {
            (Ipv6Addr::from(u128::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0)) | u128::from(low)), port).into()
        }
    }
}
