//! How late the usual ways to end a drain notice that there is nothing left to wait for. The loops are written down from
//! what their projects publish: Envoy Gateway's shutdown manager asks for the number of open connections every second,
//! Contour's every five. Here the number is that of the pod's established connections, by the kernel's list, and the last
//! one is closed at a moment of chance. What Envoy's own answer would add is not in it.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::{distribution::Distribution, figures::Figures};
use crate::{
    Lab,
    clock::monotonic_now,
    prove::{Dice, wait_until},
    sockets::{SocketState, tcp_sockets},
};

/// The loops, and how often they ask.
const LOOPS: [(&str, Duration); 2] =
    [("Envoy Gateway's loop", Duration::from_secs(1)), ("Contour's loop", Duration::from_secs(5))];
/// Pods that drain at the same time; they wait nearly always.
const LANES: u64 = 25;
const DRAINS_PER_LANE: usize = 4;

pub(super) fn measure() -> Result<()> {
    let mut figures = Figures::default();
    for (name, interval) in LOOPS {
        let late = thread::scope(|scope| {
            let lanes: Vec<_> = (0..LANES).map(|lane| scope.spawn(move || run(lane, interval))).collect();
            lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_panic| Err(anyhow!("a lane panicked")))).try_fold(
                Distribution::default(),
                |mut all, lane| {
                    all.take(lane?);
                    anyhow::Ok(all)
                },
            )
        })?;
        for (words, part) in [("median", 0.5), ("p99", 0.99)] {
            let millis = late.quantile(part).context("nothing was measured")?;
            figures.add(format!("{name}, {words} of {}", late.count()), millis, "ms", None);
        }
    }
    figures.publish("pollers", &json!({ "podsAtTheSameTime": LANES, "clock": "CLOCK_MONOTONIC" }))
}

fn run(lane: u64, interval: Duration) -> Result<Distribution> {
    let lab = Lab::new()?;
    let pod = lab.host("pod")?;
    let listener = pod.run(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address: SocketAddr = listener.local_addr()?;
    let mut dice = Dice::seeded(lane);
    let mut times = Distribution::default();
    for _ in 0..DRAINS_PER_LANE {
        let client = pod.run(|| TcpStream::connect(address)).context("no connection")?;
        let (server, _) = listener.accept()?;
        let open_for = dice.within(interval);
        let closed = thread::scope(|scope| {
            let closing = scope.spawn(move || -> Result<u64> {
                wait_until(monotonic_now(), open_for)?;
                drop(client);
                drop(server);
                Ok(monotonic_now())
            });
            loop {
                let open = tcp_sockets(&pod)?
                    .iter()
                    .filter(|socket| socket.local == address && socket.state == SocketState::Established)
                    .count();
                if open == 0 {
                    break;
                }
                wait_until(monotonic_now(), interval)?;
            }
            let noticed_at = monotonic_now();
            let closed_at = closing.join().unwrap_or_else(|_panic| Err(anyhow!("the client panicked")))?;
            anyhow::Ok((closed_at, noticed_at))
        })?;
        times.add(closed.1.cast_signed() - closed.0.cast_signed());
    }
    Ok(times)
}
