//! SIGINT and SIGTERM: noted, so that the lab is torn down in order.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};

use crate::host::runtime;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Somebody asked for the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on the signals do not end the process.
pub(super) fn listen() -> Result<()> {
    static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();
    LISTENING
        .get_or_init(|| start().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|why| anyhow!("interrupts cannot be waited for: {why}"))
        .copied()
}

/// Whether one has come.
pub(super) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Fails when one has come.
pub(super) fn check() -> Result<()> {
    if requested() { Err(Interrupted.into()) } else { Ok(()) }
}

fn start() -> Result<()> {
    let runtime = runtime();
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                REQUESTED.store(true, Ordering::Relaxed);
            });
        })
        .context("no thread could be started")?;
    Ok(())
}
