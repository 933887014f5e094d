//! The proof that the program runs, counts, and reads the same clock as the agent: a SYN to port 0, which no listener
//! can have, through the kernel's test run.

use aya::programs::{TestRun, TestRunOptions};
use lastsyn_common::{counters::SELF_TEST_SLOT, packet::Ipv4};

use super::{
    kubelet::Connection,
    maps,
    object::{INGRESS, Loaded, classifier},
};
use crate::{
    core::{class::Class, clock::Monotonic, event::Tally},
    drive::clock,
};

/// How far the kernel's clock may be off.
const CLOCK_TOLERANCE: std::time::Duration = std::time::Duration::from_secs(1);

/// An Ethernet frame with a SYN to port 0, addressed to the all-zero address of the loopback device, in whose name the
/// kernel runs a test.
const SYN_TO_PORT_0: [u8; 54] = {
    let mut frame = [0; 54];
    frame[12] = 0x08; // IPv4
    frame[14] = 0x45; // version 4, 5 words of header
    frame[17] = 40; // length
    frame[22] = 64; // time to live
    frame[23] = 6; // TCP
    frame[26] = 127; // from and to 127.0.0.1
    frame[29] = 1;
    frame[30] = 127;
    frame[33] = 1;
    frame[46] = 0x50; // 5 words of header
    frame[47] = 0x02; // SYN
    frame
};

/// The test as a connection: of the agent with itself.
pub(super) const CONNECTION: Connection = Connection::V4(Ipv4 {
    source: u32::from_ne_bytes([127, 0, 0, 1]),
    destination: u32::from_ne_bytes([127, 0, 0, 1]),
    ports: 0,
});

/// Why the program is not proven.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// It did not run.
    #[error("the kernel did not run the program on a test packet: {0}")]
    Run(String),
    /// It ran, and the counter did not move.
    #[error("the program did not count its test packet")]
    NotCounted,
    /// The two sides read different clocks: by how many milliseconds.
    #[error("the program's clock is {0} ms off the agent's")]
    Clock(u64),
    /// The maps cannot be read or written.
    #[error("the program's maps cannot be used: {0}")]
    Read(#[from] aya::maps::MapError),
}

/// Gives port 0 the slot that the test looks at.
pub(super) fn prepare(loaded: &mut Loaded) -> Result<(), SelfTestError> {
    Ok(maps::set_slot(loaded, 0, SELF_TEST_SLOT)?)
}

/// What the tests have counted: nothing listens on port 0, and so the socket table was asked too.
pub(super) fn tested(loaded: &Loaded) -> Result<Tally, aya::maps::MapError> {
    Ok(maps::attempts(loaded, SELF_TEST_SLOT)?.v4.get(Class::Refused))
}

/// Runs the test.
pub(super) fn run(loaded: &mut Loaded) -> Result<(), SelfTestError> {
    let before = tested(loaded)?;
    let started = clock::now();
    let program = classifier(&mut loaded.ebpf, INGRESS).map_err(|error| SelfTestError::Run(error.to_string()))?;
    let options = TestRunOptions { data_in: Some(&SYN_TO_PORT_0), ..TestRunOptions::new() };
    program.test_run(options).map_err(|error| SelfTestError::Run(error.to_string()))?;
    let ended = clock::now();
    judge(before, tested(loaded)?, started, ended)
}

/// Whether the program has counted a packet that came in between, by the agent's own clock.
pub(super) fn judge(before: Tally, after: Tally, started: Monotonic, ended: Monotonic) -> Result<(), SelfTestError> {
    if after.count <= before.count {
        return Err(SelfTestError::NotCounted);
    }
    let stamp = after.last.unwrap_or(Monotonic::from_nanos(0));
    let off = stamp.since(ended).max(started.since(stamp));
    if off > CLOCK_TOLERANCE {
        return Err(SelfTestError::Clock(crate::core::clock::millis(off)));
    }
    Ok(())
}
