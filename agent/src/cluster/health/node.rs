//! One node's health server, asked again and again.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{Asked, Connection, Connections, Lost, Manner, Pace, Rate, Reply, connect, ended, outcome};
use crate::{
    core::{
        clock::Monotonic,
        cluster::{ConnectionId, HealthOutcome, HealthReport, NodeName, Wanted},
    },
    drive::clock,
};

/// Whom to ask, and with what.
pub struct Target {
    /// The node.
    pub node: NodeName,
    /// Its addresses; the first that takes a connection is asked.
    pub addresses: Vec<IpAddr>,
    /// `routing.kubeProxyHealthzPort`.
    pub port: u16,
    /// How.
    pub manner: Manner,
    /// Gives connections their numbers.
    pub connections: Arc<Connections>,
    /// What all nodes share.
    pub rate: Arc<Rate>,
}

/// Asks until nobody takes the reports any more. `wanted` says whether the next answer is of use.
pub async fn poll(target: Target, mut wanted: watch::Receiver<Wanted>, reports: mpsc::Sender<HealthReport>) {
    let pace = Pace::new(target.manner.interval);
    let mut poller = Poller { last_good: 0, asked: Asked::Livez, open: None, target, reports };
    // Spread the first requests as the later ones.
    let mut due = Some(clock::now());
    loop {
        let timer = due.map(|due| Instant::now() + due.since(clock::now()));
        tokio::select! {
            biased;
            () = ended(&mut poller.open) => {
                if poller.broken().await.is_err() {
                    return;
                }
            }
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let sooner = pace.next(*wanted.borrow_and_update(), clock::now(), fastrand::u64(..));
                due = match (due, sooner) {
                    (Some(due), Some(sooner)) => Some(due.min(sooner)),
                    (_, sooner) => sooner,
                };
            }
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                poller.target.rate.turn().await;
                if poller.ask().await.is_err() {
                    return;
                }
                due = pace.next(*wanted.borrow_and_update(), clock::now(), fastrand::u64(..));
            }
        }
    }
}

struct Poller {
    target: Target,
    /// Which address took the last connection.
    last_good: usize,
    asked: Asked,
    open: Option<(ConnectionId, Connection)>,
    reports: mpsc::Sender<HealthReport>,
}

/// Nobody takes the reports any more.
struct Gone;

impl Poller {
    /// C1: the connection ended between two requests.
    async fn broken(&mut self) -> Result<(), Gone> {
        let Some((connection, _)) = self.open.take() else { return Ok(()) };
        let now = clock::now();
        self.report(connection, now, HealthOutcome::Broken).await
    }

    /// One request, and its answer however late it comes: a server that hangs is told of once per time-out, and its answer,
    /// when it comes, is that to the request that was sent then.
    async fn ask(&mut self) -> Result<(), Gone> {
        if self.open.as_ref().is_some_and(|(_, connection)| connection.has_ended()) {
            self.broken().await?;
        }
        let (id, mut connection) = if let Some(open) = self.open.take() {
            open
        } else {
            let (id, began) = (self.target.connections.next(), clock::now());
            match self.connect().await {
                Ok(connection) => (id, connection),
                Err(why) => return self.report(id, began, why).await,
            }
        };
        // A connection that has just come about answers to requests that are sent from now on.
        let mut sent_at = clock::now();
        loop {
            match self.answer(&mut connection, id, sent_at).await? {
                Ok(Reply { code, .. }) if code == hyper::StatusCode::NOT_FOUND && self.asked == Asked::Livez => {
                    self.asked = Asked::Healthz;
                    sent_at = clock::now();
                }
                Ok(reply) => {
                    let outcome = outcome(self.asked, reply.code, &reply.body);
                    if reply.code == hyper::StatusCode::NOT_FOUND {
                        // Another may answer here later.
                        self.asked = Asked::Livez;
                    }
                    self.open = Some((id, connection));
                    return self.report(id, sent_at, outcome).await;
                }
                Err(Lost::Broken(error)) => {
                    tracing::debug!(node = %self.target.node, %error, "a health server broke the connection");
                    self.asked = Asked::Livez;
                    return self.report(id, sent_at, HealthOutcome::Broken).await;
                }
                Err(lost @ (Lost::NotHttp | Lost::TooLong)) => {
                    return self.report(id, sent_at, HealthOutcome::NoStatus(lost.to_string())).await;
                }
            }
        }
    }

    async fn answer(
        &mut self,
        connection: &mut Connection,
        id: ConnectionId,
        sent_at: Monotonic,
    ) -> Result<Result<Reply, Lost>, Gone> {
        let mut answer = std::pin::pin!(connection.ask(self.asked.path()));
        loop {
            match timeout(self.target.manner.timeout, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_elapsed) => {
                    let report = self.of(id, sent_at, HealthOutcome::TimedOut);
                    self.reports.send(report).await.map_err(|_closed| Gone)?;
                }
            }
        }
    }

    /// Tries each address in turn, the last that worked first.
    async fn connect(&mut self) -> Result<Connection, HealthOutcome> {
        let count = self.target.addresses.len();
        if count == 0 {
            return Err(HealthOutcome::NoStatus("its Node object has no InternalIP to ask".to_owned()));
        }
        let mut refused = true;
        for index in (0..count).map(|offset| (self.last_good + offset) % count) {
            let Some(address) = self.target.addresses.get(index) else { continue };
            let address = SocketAddr::new(*address, self.target.port);
            match timeout(self.target.manner.timeout, connect(address)).await {
                Ok(Ok(connection)) => {
                    self.last_good = index;
                    return Ok(connection);
                }
                Ok(Err(error)) => {
                    tracing::debug!(node = %self.target.node, %address, %error, "no connection to a health server");
                    refused &= error.kind() == io::ErrorKind::ConnectionRefused;
                }
                Err(_elapsed) => refused = false,
            }
        }
        Err(if refused { HealthOutcome::Refused } else { HealthOutcome::TimedOut })
    }

    fn of(&self, connection: ConnectionId, sent_at: Monotonic, outcome: HealthOutcome) -> HealthReport {
        HealthReport { node: self.target.node.clone(), connection, sent_at, received_at: clock::now(), outcome }
    }

    async fn report(&self, connection: ConnectionId, sent_at: Monotonic, outcome: HealthOutcome) -> Result<(), Gone> {
        self.reports.send(self.of(connection, sent_at, outcome)).await.map_err(|_closed| Gone)
    }
}
