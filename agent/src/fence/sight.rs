//! What a node's kube-proxy shows over one family: its `healthCheckNodePort` of the fence's Service, asked over a connection
//! that is kept open, as it stands for the process.
//!
//! That what answers is a kube-proxy is asked of its health server, once for each connection: others answer such a port too,
//! from elsewhere than the rules (Cilium), or with kube-proxy's own code and another order behind it (OVN-Kubernetes).

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::rounds::Reach;
use crate::{
    cluster::health::{
        Asked, Connection, Connections, Lost, Manner, Pace, Rate, Reply, connect, ended, local_endpoints_of, outcome,
    },
    core::{
        clock::Monotonic,
        cluster::{ConnectionId, HealthOutcome, LocalEndpointsOutcome, NodeName, Wanted},
        listener::Family,
    },
    drive::clock,
};

/// A kube-proxy that has just started has no status for a moment: what still has none after this is something else.
const STARTING: Duration = Duration::from_secs(2);

/// Whom to ask, and for what.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) node: NodeName,
    pub(super) family: Family,
    /// The node's address of the family; `None`: it has none.
    pub(super) address: Option<IpAddr>,
    /// The Service's `healthCheckNodePort`.
    pub(super) port: u16,
    /// The Service's namespace and name.
    pub(super) service: (String, String),
    /// kube-proxy's health port.
    pub(super) health_port: u16,
    pub(super) manner: Manner,
    pub(super) connections: Arc<Connections>,
    pub(super) rate: Arc<Rate>,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) node: NodeName,
    pub(super) family: Family,
    pub(super) seen: Seen,
}

#[derive(Clone, Debug)]
pub(super) enum Seen {
    Opened(ConnectionId),
    Closed(ConnectionId),
    Endpoints { connection: ConnectionId, sent_at: Monotonic, endpoints: u64 },
    Reach(Reach),
}

/// Nobody takes what is seen any more.
struct Gone;

/// Looks until nobody takes what is seen any more. `wanted` says whether the next answer is of use.
pub(super) async fn look(target: Target, mut wanted: watch::Receiver<Wanted>, sights: mpsc::Sender<Sight>) {
    let pace = Pace::new(target.manner.interval);
    let mut looker = Looker { target, sights, open: None, strange_since: None };
    let mut due = pace.next(*wanted.borrow_and_update(), clock::now(), fastrand::u64(..)).map(|_| clock::now());
    loop {
        let timer = due.map(|due| Instant::now() + due.since(clock::now()));
        tokio::select! {
            biased;
            () = ended(&mut looker.open) => {
                if looker.closed().await.is_err() {
                    return;
                }
            }
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let asked_anew = matches!(*wanted.borrow_and_update(), Wanted::Yes { .. });
                due = asked_anew.then(clock::now);
            }
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                looker.target.rate.turn().await;
                if looker.once().await.is_err() {
                    return;
                }
                due = pace.next(*wanted.borrow_and_update(), clock::now(), fastrand::u64(..));
            }
        }
    }
}

struct Looker {
    target: Target,
    sights: mpsc::Sender<Sight>,
    open: Option<(ConnectionId, Connection)>,
    /// Since when what answers has no status.
    strange_since: Option<Instant>,
}

impl Looker {
    async fn closed(&mut self) -> Result<(), Gone> {
        match self.open.take() {
            Some((connection, _)) => self.tell(Seen::Closed(connection)).await,
            None => Ok(()),
        }
    }

    /// One request and its answer, however late it comes.
    async fn once(&mut self) -> Result<(), Gone> {
        if self.open.as_ref().is_some_and(|(_, connection)| connection.has_ended()) {
            self.closed().await?;
        }
        let (id, mut connection) = match self.open.take() {
            Some(open) => open,
            None => match self.open_one().await {
                Ok(connection) => {
                    let id = self.target.connections.next();
                    self.tell(Seen::Opened(id)).await?;
                    (id, connection)
                }
                Err(reach) => return self.tell(Seen::Reach(reach)).await,
            },
        };
        let sent_at = clock::now();
        let answered = {
            let mut answer = std::pin::pin!(connection.ask("/"));
            loop {
                match timeout(self.target.manner.timeout, &mut answer).await {
                    Ok(answered) => break answered,
                    Err(_elapsed) => {
                        let silent = "its kube-proxy takes connections and does not answer".to_owned();
                        self.tell(Seen::Reach(Reach::Silent(silent))).await?;
                    }
                }
            }
        };
        let (namespace, name) = &self.target.service;
        let endpoints = match &answered {
            Ok(Reply { body, .. }) => local_endpoints_of(body, namespace, name),
            Err(Lost::Broken(_)) => {
                self.tell(Seen::Closed(id)).await?;
                let silent = "its kube-proxy closed the connection".to_owned();
                return self.tell(Seen::Reach(Reach::Silent(silent))).await;
            }
            Err(lost @ (Lost::NotHttp | Lost::TooLong)) => {
                self.tell(Seen::Closed(id)).await?;
                return self.tell(Seen::Reach(Reach::Stranger(lost.to_string()))).await;
            }
        };
        self.open = Some((id, connection));
        match endpoints {
            LocalEndpointsOutcome::Endpoints(endpoints) => {
                self.tell(Seen::Endpoints { connection: id, sent_at, endpoints }).await
            }
            LocalEndpointsOutcome::Unknown | LocalEndpointsOutcome::Broken => {
                let why = "what answers its healthCheckNodePort does not speak of the fence's Service".to_owned();
                self.tell(Seen::Reach(Reach::Stranger(why))).await
            }
        }
    }

    /// A connection to a kube-proxy that knows the fence's Service.
    async fn open_one(&mut self) -> Result<Connection, Reach> {
        let Target { address, family, port, .. } = &self.target;
        let Some(address) = *address else {
            return Err(Reach::Stranger(format!("its Node object has no InternalIP of {family} to ask")));
        };
        let (port, limit) = (*port, self.target.manner.timeout);
        self.identify(address).await?;
        match timeout(limit, connect(SocketAddr::new(address, port))).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(Reach::Silent(format!("its healthCheckNodePort {port}: {error}"))),
            Err(_elapsed) => Err(Reach::Silent(format!("its healthCheckNodePort {port} does not answer"))),
        }
    }

    /// Whether what runs there is a kube-proxy of which the order of its steps is known.
    async fn identify(&mut self, address: IpAddr) -> Result<(), Reach> {
        let health = SocketAddr::new(address, self.target.health_port);
        let ask = async {
            let mut connection = connect(health).await.map_err(|error| error.to_string())?;
            let mut asked = Asked::Livez;
            let mut reply = connection.ask(asked.path()).await.map_err(|lost| lost.to_string())?;
            if reply.code == hyper::StatusCode::NOT_FOUND {
                asked = Asked::Healthz;
                reply = connection.ask(asked.path()).await.map_err(|lost| lost.to_string())?;
            }
            Ok::<_, String>(outcome(asked, reply.code, &reply.body))
        };
        let silent = |why: &str| Err(Reach::Silent(format!("its kube-proxy's health server at {health}: {why}")));
        let said = match timeout(self.target.manner.timeout, ask).await {
            Ok(Ok(said)) => said,
            Ok(Err(why)) => {
                self.strange_since = None;
                return silent(&why);
            }
            Err(_elapsed) => {
                self.strange_since = None;
                return silent("no answer in time");
            }
        };
        match said {
            HealthOutcome::Status(status) if status.of(self.target.family).is_some() => {
                self.strange_since = None;
                // Nobody takes it any more if this fails, which the next one finds out.
                drop(self.tell(Seen::Reach(Reach::Answers)).await);
                Ok(())
            }
            HealthOutcome::Status(_) => self.strange(format!("its kube-proxy has no status of {}", self.target.family)),
            HealthOutcome::NoStatus(why) => self.strange(why),
            HealthOutcome::Refused | HealthOutcome::TimedOut | HealthOutcome::Broken => silent("no answer"),
        }
    }

    fn strange(&mut self, why: String) -> Result<(), Reach> {
        let since = *self.strange_since.get_or_insert_with(Instant::now);
        Err(if since.elapsed() >= STARTING { Reach::Stranger(why) } else { Reach::Silent(why) })
    }

    async fn tell(&self, seen: Seen) -> Result<(), Gone> {
        let Target { node, family, .. } = &self.target;
        let sight = Sight { node: node.clone(), family: *family, seen };
        self.sights.send(sight).await.map_err(|_closed| Gone)
    }
}
