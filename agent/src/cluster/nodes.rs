//! The nodes: their list, and a poller for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::{Api, Client, api::ListParams};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use super::{
    access::Access,
    convert::{self, NodeTarget},
    health::{self, Connections, Manner, Rate},
    places::Places,
    read,
    refusal::Refusal,
    sink::{Closed, Sink},
};
use crate::core::cluster::{ClusterEvent, HealthReport, Node, NodeName, Wanted};

/// How many nodes a page has: with its images a Node object has some 20 KiB.
const PAGE: u32 = 100;

/// How often the nodes are listed anew, by their metadata: a Node object that has gone is not waited for (C12).
const AGAIN: Duration = Duration::from_secs(10);

/// The first and the longest wait after a list that failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

/// What the list and its pollers need.
#[derive(Clone)]
pub(super) struct NodesSetup {
    /// The client.
    pub(super) client: Client,
    /// How the API server is reached.
    pub(super) access: Access,
    /// Where everything goes.
    pub(super) sink: Sink,
    /// `routing.kubeProxyHealthzPort`.
    pub(super) port: u16,
    /// `routing.ignoreNodes`; empty: none.
    pub(super) ignore: String,
    /// `routing.maxNodes`: above it none is asked.
    pub(super) max_nodes: usize,
    /// How nodes are asked.
    pub(super) manner: Manner,
    /// Gives connections their numbers.
    pub(super) connections: Arc<Connections>,
    /// What all pollers share.
    pub(super) rate: Arc<Rate>,
    /// How long one request may take.
    pub(super) patience: Duration,
}

/// What is known of the nodes outside of the core: shared with whoever says which answers are of use, and with reads.
#[derive(Debug, Default)]
pub(super) struct Known {
    wanted: Mutex<BTreeMap<NodeName, watch::Sender<Wanted>>>,
    ignored: Mutex<BTreeSet<NodeName>>,
    places: Mutex<Arc<Places>>,
    look: Notify,
}

impl Known {
    /// Says whether a node's next answer is of use.
    pub(super) fn want(&self, node: &NodeName, wanted: Wanted) {
        if let Some(sender) = self.wanted.lock().unwrap_or_else(PoisonError::into_inner).get(node) {
            sender.send_if_modified(|before| std::mem::replace(before, wanted) != wanted);
        }
    }

    /// The nodes that are asked.
    pub(super) fn asked(&self) -> Vec<NodeName> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Which node an address is of, by the last list.
    pub(super) fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The nodes that `routing.ignoreNodes` selects.
    pub(super) fn ignored(&self) -> BTreeSet<NodeName> {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A read showed these nodes: those that nobody asks are looked up at once.
    pub(super) fn seen(&self, nodes: &[Node]) {
        let asked = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.iter().any(|node| !asked.contains_key(&node.name)) {
            self.look.notify_one();
        }
    }
}

/// Lists the nodes and asks them until nobody takes the events any more.
pub(super) async fn follow(setup: NodesSetup, known: Arc<Known>, first_wanted: Wanted) {
    let (reports, received) = mpsc::channel(super::sink::WAITING);
    let mut follower = Follower {
        setup,
        known,
        first_wanted,
        reports,
        pollers: BTreeMap::new(),
        tasks: JoinSet::new(),
        listed: false,
    };
    let sink = follower.setup.sink.clone();
    tokio::select! {
        _closed = follower.run() => {}
        _closed = pass_on(received, sink) => {}
    }
}

/// All nodes and where to ask them, but for those that `ignored` names.
///
/// # Errors
/// See [`Refusal`].
pub(crate) async fn targets(
    client: &Client,
    access: &Access,
    ignored: &BTreeSet<NodeName>,
    patience: Duration,
) -> Result<Vec<NodeTarget>, Refusal> {
    let api = Api::<ApiNode>::all(client.clone());
    let (mut targets, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        access.turn().await;
        let list = match timeout(patience, api.list(&page)).await {
            Ok(Ok(list)) => list,
            Ok(Err(error)) => return Err((&error).into()),
            Err(_elapsed) => return Err(Refusal::timed_out()),
        };
        let found = list.items.iter().filter_map(convert::node_target);
        targets.extend(found.filter(|target| !ignored.contains(&target.node.name)));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(targets),
        }
    }
}

async fn pass_on(mut reports: mpsc::Receiver<HealthReport>, sink: Sink) -> Result<(), Closed> {
    while let Some(report) = reports.recv().await {
        sink.tell(ClusterEvent::Health(report)).await?;
    }
    Ok(())
}

struct Follower {
    setup: NodesSetup,
    known: Arc<Known>,
    first_wanted: Wanted,
    reports: mpsc::Sender<HealthReport>,
    pollers: BTreeMap<NodeName, (AbortHandle, Vec<std::net::IpAddr>)>,
    tasks: JoinSet<()>,
    listed: bool,
}

impl Follower {
    async fn run(&mut self) -> Result<(), Closed> {
        let mut backoff = BACKOFF.0;
        loop {
            match self.list().await {
                Ok(targets) => {
                    backoff = BACKOFF.0;
                    self.take(targets).await?;
                    self.await_news().await?;
                }
                Err(refusal) => {
                    if let Refusal::Denied(why) = &refusal
                        && !self.listed
                    {
                        self.setup.sink.tell(ClusterEvent::NodesUnreadable(why.clone())).await?;
                    }
                    tracing::debug!(why = refusal.words(), "asking the API server for the nodes again");
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }

    async fn list(&self) -> Result<Vec<NodeTarget>, Refusal> {
        let NodesSetup { client, access, patience, .. } = &self.setup;
        let ignored = match self.setup.ignore.as_str() {
            "" => BTreeSet::new(),
            selector => read::nodes_selected(client, access, selector, *patience).await?,
        };
        self.known.ignored.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&ignored);
        targets(client, access, &ignored, *patience).await
    }

    async fn take(&mut self, targets: Vec<NodeTarget>) -> Result<(), Closed> {
        let nodes: Vec<Node> = targets.iter().map(|target| target.node.clone()).collect();
        self.listed = true;
        *self.known.places.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Places::of(&targets));
        self.setup.sink.tell(ClusterEvent::NodesListed(nodes)).await?;
        if targets.len() > self.setup.max_nodes {
            self.keep(&BTreeSet::new());
            return Ok(());
        }
        self.keep(&targets.iter().map(|target| target.node.name.clone()).collect());
        for target in targets {
            self.ask(target);
        }
        Ok(())
    }

    /// Stops asking all others.
    fn keep(&mut self, kept: &BTreeSet<NodeName>) {
        self.pollers.retain(|name, (task, _)| {
            let keep = kept.contains(name);
            if !keep {
                task.abort();
            }
            keep
        });
        self.known.wanted.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| kept.contains(name));
    }

    /// Asks one, unless it is asked at these addresses already.
    fn ask(&mut self, target: NodeTarget) {
        let NodeTarget { node: Node { name, .. }, addresses, .. } = target;
        if let Some((task, at)) = self.pollers.get(&name) {
            if *at == addresses {
                return;
            }
            task.abort();
        }
        let (sender, wanted) = watch::channel(self.first_wanted);
        self.known.wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), sender);
        let asked = health::Target {
            node: name.clone(),
            addresses: addresses.clone(),
            port: self.setup.port,
            manner: self.setup.manner,
            connections: Arc::clone(&self.setup.connections),
            rate: Arc::clone(&self.setup.rate),
        };
        let task = self.tasks.spawn(health::poll(asked, wanted, self.reports.clone()));
        self.pollers.insert(name, (task, addresses));
    }

    /// Until a node may have joined. One that has gone is told.
    async fn await_news(&mut self) -> Result<(), Closed> {
        loop {
            tokio::select! {
                () = self.known.look.notified() => return Ok(()),
                () = tokio::time::sleep(AGAIN) => {}
            }
            if self.pollers.is_empty() {
                continue;
            }
            let NodesSetup { client, access, patience, .. } = &self.setup;
            let ignored = self.known.ignored();
            // A list that fails tells nothing: the next one, or the consistent read, does.
            let Ok(nodes) = read::nodes_by_metadata(client, access, &ignored, *patience).await else { continue };
            let names: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
            if names.iter().any(|name| !self.pollers.contains_key(name)) {
                return Ok(());
            }
            if names.len() < self.pollers.len() {
                self.keep(&names);
                self.setup.sink.tell(ClusterEvent::NodesListed(nodes)).await?;
            }
        }
    }
}
