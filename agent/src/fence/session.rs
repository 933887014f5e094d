//! One time of serving: from the first question to some time after the last answer. All that is open then, connections,
//! tasks and the Lease, goes with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use super::{
    lease::{Held, Lease, RENEW_EVERY},
    nodes::{Listed, list},
    rounds::{Rounds, WriteId},
    sight::{self, Sight, Target},
    store::{Store, Stored},
};
use crate::{
    cluster::{
        Access, Refusal,
        convert::NodeTarget,
        health::{Connections, Manner, Rate},
    },
    config::Config,
    core::{
        clock::Monotonic,
        cluster::{NodeName, Wanted},
        event::ByFamily,
        listener::Family,
    },
};

/// At least so long between two lists of the nodes.
const LIST_EVERY: Duration = Duration::from_millis(300);

/// The wait after the API server refused something, the first and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How many sights may wait.
const SIGHTS: usize = 1024;

/// What a task has to say.
pub(super) enum Done {
    Loaded(Family, Result<Stored, Refusal>),
    Written(Family, WriteId, Result<Stored, Refusal>),
    Listed(Result<Listed, Refusal>),
    Renewed(Result<Held, Refusal>),
}

/// A time of serving.
pub(super) struct Session {
    access: Access,
    client: Client,
    store: Store,
    lease: Lease,
    held: Held,
    renewing: bool,
    renew_at: Instant,
    families: ByFamily<OfFamily>,
    targets: BTreeMap<NodeName, NodeTarget>,
    listing: bool,
    list_after: Instant,
    list_backoff: Duration,
    settings: Settings,
    connections: Arc<Connections>,
    rate: Arc<Rate>,
    lookers: BTreeMap<(NodeName, Family), (AbortHandle, watch::Sender<Wanted>)>,
    sights: mpsc::Sender<Sight>,
    seen: mpsc::Receiver<Sight>,
    tasks: JoinSet<Done>,
    looking: JoinSet<()>,
}

/// What the operator chose.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) health_port: u16,
    pub(super) ignore: String,
    pub(super) manner: Manner,
    pub(super) max_rate: u32,
    pub(super) max_nodes: usize,
    pub(super) namespace: String,
}

#[derive(Default)]
struct OfFamily {
    stored: Option<Stored>,
    busy: bool,
    after: Option<Instant>,
    backoff: Option<Duration>,
    /// The Service that its nodes are looked at for.
    looked_at: Option<String>,
    /// That is another than before: its nodes are to be looked at anew.
    moved: bool,
}

impl Settings {
    pub(super) fn of(config: &Config, namespace: String) -> Self {
        let routing = &config.routing;
        Self {
            health_port: routing.kube_proxy_healthz_port,
            ignore: routing.ignore_nodes.clone(),
            manner: Manner { interval: config.fence.poll_interval, timeout: routing.poll.timeout },
            max_rate: config.fence.max_rate,
            max_nodes: usize::try_from(config.fence.max_nodes).unwrap_or(usize::MAX),
            namespace,
        }
    }
}

impl Session {
    pub(super) fn begin(
        client: Client,
        access: Access,
        lease: Lease,
        held: Held,
        settings: Settings,
        connections: Arc<Connections>,
    ) -> Self {
        let (sights, seen) = mpsc::channel(SIGHTS);
        let now = Instant::now();
        Self {
            store: Store::new(client.clone(), access.clone(), settings.namespace.clone()),
            access,
            client,
            lease,
            held,
            renewing: false,
            renew_at: now + RENEW_EVERY,
            families: ByFamily::default(),
            targets: BTreeMap::new(),
            listing: false,
            list_after: now,
            list_backoff: AGAIN.0,
            rate: Arc::new(Rate::new(settings.max_rate)),
            settings,
            connections,
            lookers: BTreeMap::new(),
            sights,
            seen,
            tasks: JoinSet::new(),
            looking: JoinSet::new(),
        }
    }

    /// Ends it: whoever else wants to serve may.
    pub(super) async fn end(self) {
        let Self { lease, client, held, tasks, looking, .. } = self;
        // A write under way shall not come after the Lease has been given back.
        drop((tasks, looking));
        lease.release(&client, &held).await;
    }

    /// Whether another replica may serve. One that cannot renew its Lease has no answers either: they take a list of nodes.
    pub(super) fn is_over(&self) -> bool {
        self.held.has_expired()
    }

    /// The next thing that was seen, or that a task has to say.
    pub(super) async fn next(&mut self) -> Next {
        tokio::select! {
            Some(sight) = self.seen.recv() => Next::Sight(sight),
            Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => match done {
                Ok(done) => Next::Done(done),
                Err(error) => {
                    tracing::error!(%error, "a task of the fence ended early");
                    Next::Broken
                }
            },
        }
    }

    /// Begins whatever is due.
    pub(super) fn work(&mut self, rounds: &mut Rounds, listen: bool, now: Monotonic) {
        self.renew();
        self.list(rounds, listen, now);
        if self.targets.is_empty() || self.held.has_expired() {
            return;
        }
        for family in Family::ALL {
            self.load(rounds, family);
            self.write(rounds, family, now);
        }
    }

    /// When [`work`](Self::work) is due again, if nothing comes before.
    pub(super) fn due(&self, rounds: &Rounds, now: Monotonic) -> Instant {
        let instant = |time: Monotonic| Instant::now() + time.since(now);
        let writes = Family::ALL.into_iter().filter_map(|family| rounds.write_due(family, now)).map(instant);
        let loads = Family::ALL.into_iter().filter_map(|family| self.families.get(family).after);
        let lists = rounds.list_due(now).map(instant);
        let again = (!self.listing && rounds.list_wanted(now)).then_some(self.list_after);
        let soon = Instant::now() + Duration::from_millis(2);
        let all = writes.chain(loads).chain(lists).chain(again).chain([self.renew_at]);
        all.min().unwrap_or(soon).max(soon)
    }

    fn renew(&mut self) {
        if self.renewing || Instant::now() < self.renew_at {
            return;
        }
        self.renewing = true;
        let (lease, client, held) = (self.lease.clone(), self.client.clone(), self.held.clone());
        self.tasks.spawn(async move { Done::Renewed(lease.renew(&client, &held).await) });
    }

    fn list(&mut self, rounds: &Rounds, listen: bool, now: Monotonic) {
        let wanted = rounds.list_wanted(now) || (listen && self.targets.is_empty());
        if !wanted || self.listing || Instant::now() < self.list_after {
            return;
        }
        self.listing = true;
        let (client, access, ignore) = (self.client.clone(), self.access.clone(), self.settings.ignore.clone());
        let known: BTreeSet<NodeName> = self.targets.keys().cloned().collect();
        self.tasks.spawn(async move { Done::Listed(list(&client, &access, &ignore, &known).await) });
    }

    fn load(&mut self, rounds: &Rounds, family: Family) {
        let of_family = self.families.get_mut(family);
        let waits = of_family.after.is_some_and(|after| Instant::now() < after);
        let too_many = self.targets.len() > self.settings.max_nodes;
        if !rounds.load_wanted(family) || of_family.busy || waits || too_many {
            return;
        }
        of_family.busy = true;
        of_family.after = None;
        let store = self.store.clone();
        self.tasks.spawn(async move { Done::Loaded(family, store.load(family).await) });
    }

    fn write(&mut self, rounds: &mut Rounds, family: Family, now: Monotonic) {
        let of_family = self.families.get_mut(family);
        let Some(stored) = of_family.stored.clone().filter(|_| !of_family.busy) else { return };
        let Some(write) = rounds.begin_write(family, now) else { return };
        of_family.busy = true;
        let (store, alive) = (self.store.clone(), rounds.names());
        self.tasks
            .spawn(async move { Done::Written(family, write.id, store.write(stored, &write.values, &alive).await) });
    }

    /// Takes in what a task has to say.
    pub(super) fn done(&mut self, done: Done, rounds: &mut Rounds, now: Monotonic) {
        match done {
            Done::Renewed(renewed) => {
                self.renewing = false;
                self.renew_at = Instant::now() + RENEW_EVERY;
                match renewed {
                    Ok(held) => self.held = held,
                    Err(Refusal::Conflict | Refusal::Absent) => {
                        tracing::warn!("another replica has taken the Lease");
                        self.held.lose();
                    }
                    Err(refusal) => {
                        tracing::warn!(why = refusal.words(), "the Lease could not be renewed");
                        self.renew_at = Instant::now() + AGAIN.0;
                    }
                }
            }
            Done::Listed(Ok(listed)) => {
                self.listing = false;
                self.list_after = Instant::now() + LIST_EVERY;
                self.list_backoff = AGAIN.0;
                self.listed(listed, rounds);
            }
            Done::Listed(Err(refusal)) => {
                self.listing = false;
                tracing::warn!(why = refusal.words(), "the nodes could not be listed");
                self.list_after = Instant::now() + self.list_backoff;
                self.list_backoff = (self.list_backoff * 2).min(AGAIN.1);
            }
            Done::Loaded(family, Ok(stored)) => {
                rounds.loaded(family, &stored.markers.values(), now);
                let of_family = self.families.get_mut(family);
                let before = of_family.looked_at.take();
                let moved = before.as_ref() != Some(&stored.service);
                let looked_at = Some(stored.service.clone());
                *of_family = OfFamily { stored: Some(stored), looked_at, moved, ..OfFamily::default() };
                self.look(family);
            }
            Done::Loaded(family, Err(refusal)) => self.failed(family, &refusal, rounds),
            Done::Written(family, id, Ok(stored)) => {
                let of_family = self.families.get_mut(family);
                let looked_at = of_family.looked_at.take();
                *of_family = OfFamily { stored: Some(stored), looked_at, ..OfFamily::default() };
                rounds.written(family, id, now);
            }
            Done::Written(family, id, Err(refusal)) => {
                rounds.write_lost(family, id);
                self.families.get_mut(family).busy = false;
                if refusal != Refusal::Conflict {
                    self.failed(family, &refusal, rounds);
                }
            }
        }
    }

    fn failed(&mut self, family: Family, refusal: &Refusal, rounds: &mut Rounds) {
        let of_family = self.families.get_mut(family);
        let backoff = of_family.backoff.unwrap_or(AGAIN.0);
        *of_family = OfFamily {
            stored: None,
            busy: false,
            after: Some(Instant::now() + backoff),
            backoff: Some((backoff * 2).min(AGAIN.1)),
            looked_at: of_family.looked_at.take(),
            moved: false,
        };
        if rounds.trouble(family) != Some(refusal.words()) {
            tracing::warn!(%family, why = refusal.words(), "the fence cannot write its markers");
        }
        rounds.unavailable(family, refusal.words().to_owned());
    }

    fn listed(&mut self, listed: Listed, rounds: &mut Rounds) {
        rounds.nodes(&listed.nodes, listed.as_of);
        let names: BTreeSet<NodeName> = listed.nodes.iter().map(|node| node.name.clone()).collect();
        if let Some(targets) = listed.targets {
            if targets.len() > self.settings.max_nodes {
                let why = format!("{} nodes are more than fence.maxNodes: every write is sent to all", targets.len());
                for family in Family::ALL {
                    rounds.unavailable(family, why.clone());
                }
            }
            self.targets = targets.into_iter().map(|target| (target.node.name.clone(), target)).collect();
        }
        self.targets.retain(|name, _| names.contains(name));
        self.lookers.retain(|(name, _), (task, _)| {
            let keep = names.contains(name);
            if !keep {
                task.abort();
            }
            keep
        });
        for family in Family::ALL {
            self.look(family);
        }
    }

    /// Looks at every node from now on, at the Service's port. Another Service's is looked at anew.
    fn look(&mut self, family: Family) {
        let Some(stored) = self.families.get(family).stored.clone() else { return };
        for (name, target) in &self.targets {
            let key = (name.clone(), family);
            let looked = Target {
                node: name.clone(),
                family,
                address: target.addresses.iter().find(|address| address.is_ipv4() == (family == Family::V4)).copied(),
                port: stored.port,
                service: (self.settings.namespace.clone(), stored.service.clone()),
                health_port: self.settings.health_port,
                manner: self.settings.manner,
                connections: Arc::clone(&self.connections),
                rate: Arc::clone(&self.rate),
            };
            if self.lookers.get(&key).is_some_and(|(task, _)| !task.is_finished()) && !self.families.get(family).moved {
                continue;
            }
            if let Some((task, _)) = self.lookers.remove(&key) {
                task.abort();
            }
            let (wanted, receiver) = watch::channel(Wanted::No);
            let task = self.looking.spawn(sight::look(looked, receiver, self.sights.clone()));
            self.lookers.insert(key, (task, wanted));
        }
        self.families.get_mut(family).moved = false;
    }

    /// Says which nodes' answers are of use.
    pub(super) fn want(&self, rounds: &Rounds, since: Monotonic, now: Monotonic) {
        let wants = ByFamily { v4: rounds.wants(Family::V4), v6: rounds.wants(Family::V6) };
        for ((name, family), (_, wanted)) in &self.lookers {
            let of_use = wants.get(*family).is_some_and(|wants| rounds.answer_wanted(name, *family, wants, now));
            let wish = if of_use { Wanted::Yes { since, due: None } } else { Wanted::No };
            wanted.send_if_modified(|before| std::mem::replace(before, wish) != wish);
        }
    }

    /// Whether both families' objects are there and every node has its value, or cannot have it now.
    pub(super) fn is_settled(&self, rounds: &Rounds) -> bool {
        !self.targets.is_empty()
            && Family::ALL.into_iter().all(|family| {
                let written = || rounds.looks(family).all(|looked| looked.written.is_some());
                rounds.trouble(family).is_some()
                    || (self.families.get(family).stored.is_some() && !self.families.get(family).busy && written())
            })
    }
}

/// See [`Session::next`].
pub(super) enum Next {
    Sight(Sight),
    Done(Done),
    Broken,
}
