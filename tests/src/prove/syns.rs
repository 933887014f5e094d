//! Every SYN of a flood is counted once: the sum over the classes is what was sent. `cargo xtask prove syns` sends a
//! million.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::Record;
use crate::{
    AgentConfig, Connection, Counted, Pair, Server, ServerConfig,
    agent::Counts,
    await_condition,
    clock::monotonic_now,
    counted::PORT,
    counters::{Counters, interface_counters},
    pair::{INTERFACE, POD_V4, POD_V6},
    raw::{Segment, Sender},
};

const SYNS: u32 = 1_000_000;
/// From so many ports.
const PORTS: u32 = 65_000;
/// So small that most SYNs find the table of handshakes full, and are answered with cookies.
const BACKLOG: i32 = 64;
const SOON: Duration = Duration::from_secs(30);
const RECORD: &str = "syns.jsonl";

/// What became of a flood.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// SYNs that the sender's interface took and did not drop.
    pub sent: u64,
    /// What the agent counted, over both families.
    pub counted: Counts,
    /// SYNs that the pod's kernel answered with cookies.
    pub cookies: u64,
    /// SYNs that it dropped, as there was no room for more connections.
    pub overflows: u64,
    /// How long the sending took.
    pub took: Duration,
}

/// Sends a million SYNs.
///
/// # Errors
///
/// When one was not counted or counted twice, or the scene cannot be made.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    if record.lines().is_empty() {
        let flood = Flood::send(SYNS)?;
        flood.check()?;
        record.add(flood.to_json())?;
    }
    for line in record.lines() {
        writeln!(std::io::stdout().lock(), "{line}")?;
    }
    Ok(())
}

// === impl Flood ===

impl Flood {
    /// Sends SYNs at full rate over both families: half of them while the server accepts, half while its queue is full.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made.
    pub fn send(syns: u32) -> Result<Self> {
        let pair = Pair::new()?;
        pair.pod.set_sysctl("net.ipv4.tcp_max_syn_backlog", &BACKLOG.to_string())?;
        let counted = Counted::with(pair, AgentConfig::default())?;
        let pair = &counted.pair;
        let server = Server::start(&pair.pod, ServerConfig { backlog: BACKLOG, ..ServerConfig::default() })?;
        let kernel = || Counters::of(&pair.pod);
        let before = (interface_counters(&pair.client, INTERFACE)?, kernel()?);

        let begun_at = monotonic_now();
        flood(pair, 0..syns / 2)?;
        let mut took = Duration::from_nanos(monotonic_now() - begun_at);
        server.stop_accepting()?;
        let target = *pair.targets(PORT).first().context("a target")?;
        let full = || kernel().map(|now| now.tcp_ext("ListenOverflows") > before.1.tcp_ext("ListenOverflows"));
        let (mut waiting, mut connects) = (Vec::new(), 0_u64);
        while !full()? {
            ensure!(connects < 1000, "the server's queue does not get full");
            waiting.extend(Connection::open(&pair.client, target, Duration::from_millis(200)).ok());
            connects += 1;
        }
        let begun_at = monotonic_now();
        flood(pair, syns / 2..syns)?;
        took += Duration::from_nanos(monotonic_now() - begun_at);

        // Clients of connects that found no room send their SYNs again; those are the client's own, and it counts them.
        let after = interface_counters(&pair.client, INTERFACE)?;
        let own = await_condition("a moment in which the client sends no SYN of its own", SOON, || {
            let own =
                || Counters::of(&pair.client).ok().map(|now| now.tcp("ActiveOpens") + now.tcp_ext("TCPSynRetrans"));
            let (before, counts, after) = (own()?, counted.so_far().ok()?, own()?);
            (before == after).then_some((after, counts))
        })?;
        let (own, [v4, v6]) = own;
        let (now, unsent) = (kernel()?, after.unsent - before.0.unsent);
        Ok(Self {
            sent: u64::from(syns) + own - unsent,
            counted: v4.plus(v6),
            cookies: now.tcp_ext("SyncookiesSent") - before.1.tcp_ext("SyncookiesSent"),
            overflows: now.tcp_ext("ListenOverflows") - before.1.tcp_ext("ListenOverflows"),
            took,
        })
    }

    /// Holds the count to what was sent, and the scene to what it is to show.
    ///
    /// # Errors
    ///
    /// When a SYN is missing or was counted twice.
    pub fn check(&self) -> Result<()> {
        let Counts { new, retransmit, .. } = self.counted;
        ensure!(self.counted.sum() == self.sent, "not every SYN was counted once: {self:?}");
        ensure!(new + retransmit == self.sent, "SYNs to an open listener are of other classes: {self:?}");
        ensure!(self.cookies > 0 && self.overflows > 0 && retransmit > 0, "the scene shows too little: {self:?}");
        Ok(())
    }

    fn to_json(self) -> Value {
        let Counts { new, retransmit, .. } = self.counted;
        json!({
            "sent": self.sent, "counted": self.counted.sum(), "new": new, "retransmit": retransmit,
            "cookies": self.cookies, "overflows": self.overflows, "tookMs": u64::try_from(self.took.as_millis()).ok(),
        })
    }
}

/// Sends these SYNs from two threads, each over one family.
fn flood(pair: &Pair, numbers: std::ops::Range<u32>) -> Result<()> {
    let ways: [(IpAddr, IpAddr); 2] = [
        (Ipv4Addr::new(198, 51, 100, 7).into(), POD_V4.into()),
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into(), POD_V6.into()),
    ];
    thread::scope(|scope| {
        let senders: Vec<_> = (0_u32..)
            .zip(ways)
            .map(|(family, (source, destination))| {
                let numbers = numbers.clone().filter(move |number| number % 2 == family);
                scope.spawn(move || -> Result<()> {
                    let sender = Sender::open(&pair.client, INTERFACE)?;
                    for number in numbers {
                        // Each is followed by itself, so that some meet their own handshake.
                        let port = u16::try_from(1 + number / 4 % PORTS)?;
                        let (source, target) = (SocketAddr::new(source, port), SocketAddr::new(destination, PORT));
                        sender.send(&Segment { sequence: number / 4, ..pair.syn(source, target) })?;
                    }
                    Ok(())
                })
            })
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().unwrap_or_else(|_| Err(anyhow!("a sender panicked"))))
    })
}
