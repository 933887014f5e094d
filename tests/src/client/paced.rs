//! A client that tries connections at a pace and never waits for one before the next.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Attempt, Outcome, Summary,
    attempt::{attempt, connect_once},
};
use crate::{Host, clock::monotonic_now, host::runtime, wait::await_condition};

/// Long enough for SYNs that go out again after 1, 3 and 7 seconds.
const PATIENCE: Duration = Duration::from_secs(12);
/// From a Service's first ready pod to the rules of the last node.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
/// A SYN that nobody answers goes out again after a second; a new try then does as well.
const SYN_AGAIN: Duration = Duration::from_secs(1);

/// Tries a number of connections per second, to each of its targets in turn, from a thread of its own in a host.
#[derive(Debug)]
pub struct PacedClient {
    orders: watch::Sender<Orders>,
    record: Arc<Mutex<Record>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Orders {
    per_second: u32,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Goes on.
    None,
    /// No new connections; the outstanding ones are waited for.
    WhenAllIsDone,
    /// Nobody wants to know.
    AtOnce,
}

#[derive(Debug, Default)]
struct Record {
    attempts: Vec<Attempt>,
    summary: Summary,
}

// === impl PacedClient ===

impl PacedClient {
    /// Starts it. Each connection has 12 seconds.
    ///
    /// # Errors
    ///
    /// When there is no target.
    pub fn start(host: &Host, targets: Vec<SocketAddr>, per_second: u32) -> Result<Self> {
        ensure!(!targets.is_empty(), "a client of {} was given no target", host.role());
        let (orders, inbox) = watch::channel(Orders { per_second, end: End::None });
        let record = Arc::<Mutex<Record>>::default();
        let shared = Arc::clone(&record);
        let thread = host.spawn("client", move || runtime().block_on(keep_pace(targets, inbox, shared)))?;
        Ok(Self { orders, record, thread: Some(thread) })
    }

    /// The same once every target has answered, so that what it counts as lost was served before: a pod is ready before the
    /// last node's rules lead to it, and until then they refuse.
    ///
    /// # Errors
    ///
    /// When a target does not answer in time.
    pub fn start_served(host: &Host, targets: Vec<SocketAddr>, per_second: u32) -> Result<Self> {
        for &target in &targets {
            await_condition(&format!("an answer of {target} at {}", host.role()), FIRST_ANSWER, || {
                matches!(connect_once(host, target, SYN_AGAIN).outcome, Outcome::Served { .. })
            })?;
        }
        Self::start(host, targets, per_second)
    }

    /// Changes the pace from now on; 0 pauses.
    pub fn set_pace(&self, per_second: u32) {
        self.orders.send_modify(|orders| orders.per_second = per_second);
    }

    /// The numbers up to now.
    pub fn so_far(&self) -> Summary {
        self.record().summary.clone()
    }

    /// The connections that have ended up to now, in the order in which they ended.
    pub fn ended_so_far(&self) -> Vec<Attempt> {
        self.record().attempts.clone()
    }

    /// Tries no more, waits for the outstanding ones, and returns all in the order in which they were tried.
    ///
    /// # Errors
    ///
    /// When the client's thread panicked.
    pub fn stop(mut self) -> Result<Vec<Attempt>> {
        self.orders.send_modify(|orders| orders.end = End::WhenAllIsDone);
        let thread = self.thread.take().context("a client is stopped once")?;
        thread.join().map_err(|_panic| anyhow!("the client's thread panicked"))?;
        let mut attempts = std::mem::take(&mut self.record().attempts);
        attempts.sort_by_key(|attempt| attempt.tried_at);
        Ok(attempts)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }
}

impl Drop for PacedClient {
    fn drop(&mut self) {
        self.orders.send_modify(|orders| orders.end = End::AtOnce);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the client's thread panicked");
        }
    }
}

async fn keep_pace(targets: Vec<SocketAddr>, mut inbox: watch::Receiver<Orders>, record: Arc<Mutex<Record>>) {
    let start = monotonic_now();
    let mut turn = targets.iter().cycle();
    let mut under_way = JoinSet::new();
    let mut next = Instant::now();
    loop {
        let Orders { per_second, end } = *inbox.borrow_and_update();
        match end {
            End::None => {}
            End::WhenAllIsDone => break,
            End::AtOnce => return,
        }
        tokio::select! {
            biased;
            changed = inbox.changed() => {
                if changed.is_err() {
                    return;
                }
                // After a pause what was not tried is not made up for.
                next = next.max(Instant::now());
            }
            // Where the thread was late, the connections that were due are tried at once.
            () = sleep_until(next), if per_second > 0 => {
                next += Duration::from_secs(1) / per_second;
                if let Some(&target) = turn.next() {
                    lock(&record).begin();
                    let record = Arc::clone(&record);
                    under_way.spawn(async move {
                        let attempt = attempt(target, None, PATIENCE, start).await;
                        lock(&record).end(attempt);
                    });
                }
            }
            Some(_) = under_way.join_next() => {}
        }
    }
    loop {
        tokio::select! {
            ended = under_way.join_next() => if ended.is_none() { return },
            changed = inbox.changed() => if changed.is_err() || inbox.borrow_and_update().end == End::AtOnce { return },
        }
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Record ===

impl Record {
    fn begin(&mut self) {
        self.summary.tried += 1;
        self.summary.outstanding += 1;
    }

    fn end(&mut self, attempt: Attempt) {
        self.summary.outstanding -= 1;
        self.summary.add(&attempt.outcome);
        self.attempts.push(attempt);
    }
}
