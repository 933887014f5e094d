//! A call of the hook over HTTP.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Result, anyhow};
use hyper::Method;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{Host, clock::monotonic_now, host::runtime, http, wait::await_condition};

/// What the hook answered.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainAnswer {
    /// The status code.
    pub status: u16,
    /// The verdict; whatever else a refusal says, as a string.
    pub verdict: Value,
    /// When the call was made, on the clock of [`monotonic_now`].
    pub called_at: u64,
    /// When the answer arrived, on the same clock.
    pub answered_at: u64,
}

/// A call of the hook that waits for its answer. Dropped, it hangs up.
#[derive(Debug)]
pub struct DrainCall {
    called_at: u64,
    answer: Arc<OnceLock<Result<DrainAnswer, String>>>,
    hang_up: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl DrainCall ===

impl DrainCall {
    /// Calls `POST /drain` of an agent from a host.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn place(host: &Host, agent: SocketAddr) -> Result<Self> {
        let answer = Arc::<OnceLock<_>>::default();
        let answered = Arc::clone(&answer);
        let (hang_up, gone) = oneshot::channel();
        let called_at = monotonic_now();
        let thread = host.spawn("drain", move || {
            runtime().block_on(async {
                tokio::select! {
                    outcome = call(agent, called_at) => {
                        // Nobody else sets it.
                        answered.set(outcome.map_err(|error| format!("{error:#}"))).ok();
                    }
                    _ = gone => {}
                }
            });
        })?;
        Ok(Self { called_at, answer, hang_up: Some(hang_up), thread: Some(thread) })
    }

    /// When the call was made, on the clock of [`monotonic_now`].
    pub fn called_at(&self) -> u64 {
        self.called_at
    }

    /// The answer, if it has come.
    ///
    /// # Errors
    ///
    /// When the connection broke without one.
    pub fn answered(&self) -> Result<Option<DrainAnswer>> {
        match self.answer.get() {
            None => Ok(None),
            Some(Ok(answer)) => Ok(Some(answer.clone())),
            Some(Err(why)) => Err(anyhow!("the hook got no answer: {why}")),
        }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// When it did not come within the time, or the connection broke without one.
    pub fn wait(&self, within: Duration) -> Result<DrainAnswer> {
        await_condition("the answer to the hook", within, || self.answered().transpose()).and_then(|answer| answer)
    }

    /// Closes the connection, as a caller does that goes away.
    pub fn hang_up(self) {}
}

impl Drop for DrainCall {
    fn drop(&mut self) {
        if let Some(hang_up) = self.hang_up.take() {
            // The thread may have ended with the answer.
            hang_up.send(()).ok();
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the hook's thread panicked");
        }
    }
}

async fn call(agent: SocketAddr, called_at: u64) -> Result<DrainAnswer> {
    let answer = http::exchange(&Method::POST, agent, "/drain", "").await?;
    let verdict = answer.json().unwrap_or(Value::String(answer.body));
    Ok(DrainAnswer { status: answer.status, verdict, called_at, answered_at: answer.answered_at })
}
