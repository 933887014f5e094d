//! `lastsyn run`: everything put together, and the loop.

mod knock;
mod loudness;
mod observing;
mod serve;
mod tell;

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use observing::Observing;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use crate::{
    cluster::pod_events::PodEvents,
    config::Probes,
    config::{Config, Mode, Watch as WatchConfig},
    core::{
        clock::Monotonic,
        cluster::ClusterEvent,
        drain::Core,
        event::{Action, CallerId, Depth, Event},
        phase::Phase,
        settings::NoRouting,
        termination::PodRead,
        verdict::{Strategy, Verdict},
    },
    drive::{
        clock,
        cluster::{self, Cluster},
        course::Course,
        evidence::Reader,
        handle::{Request, channel},
        probes,
        readiness::Gate,
        settings::{choice, settings},
        sources::Knockers,
    },
    observe::Begun,
    proxy,
    sensor::{InterfaceError, Interfaces, LinkChanges, Scope, SelectError, Selected, Setting, told},
    server::{self, ServeError},
    state::Keeper,
    telemetry::{log::LevelHandle, metrics::Metrics},
};

/// By how much the event loop's timers can be late: they count milliseconds, and so does `epoll_wait`. They are set this
/// much early, and the thread sleeps the rest exactly.
const COARSE: Duration = Duration::from_millis(3);

/// How often the sensor is looked after while a drain runs.
const WATCH: Duration = Duration::from_secs(1);

/// For how long around the time at which the core is due nothing is sampled.
const BEFORE_DUE: Duration = Duration::from_millis(20);

/// How long connections have to carry their last answers away when the agent stops. S7 allows 100 ms in all.
const GOODBYE: Duration = Duration::from_millis(50);

/// The agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Interfaces(#[from] InterfaceError),
    /// The sensor that the operator insists on cannot be had.
    #[error("{0}; with sensor.strategy: auto the agent would run on the best sensor that can be had")]
    Sensor(#[from] SelectError),
    /// The server cannot listen.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Signals cannot be awaited.
    #[error("cannot wait for SIGTERM: {0}")]
    Signal(#[source] std::io::Error),
}

/// Runs the agent until it is asked to stop and nothing keeps it (S7).
///
/// # Errors
///
/// If it cannot begin. Once it runs, whatever fails is told in the verdict.
pub async fn run(config: Config, level: LevelHandle) -> Result<(), RunError> {
    // First of all: a SIGTERM that came before this line would end the agent at once, after it the loop decides.
    let terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
    let interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
    // Before the first look at the interfaces, so that none comes in between.
    let link_changes = LinkChanges::open();
    let interfaces = Interfaces::open()?;
    let (handle, requests) = channel();
    let (addresses, known_addresses) = watch::channel(Vec::new());
    let metrics = Arc::new(Metrics::new());
    let (gate, readiness) = Gate::new(&config.readiness);
    // Before the sensor: an agent whose place is taken is not to push its programs in front of those of the one that has
    // it, which would have to count its quiet period anew.
    let server = server::bind(&config, handle, known_addresses, level, Arc::clone(&metrics), readiness).await?;
    let ignored = &config.listeners.ignore_sources;
    let scope = Scope::of(config.sensor.network);
    if scope == Scope::Node && config.listeners.watch == WatchConfig::Auto {
        tracing::warn!(
            "the pod shares the node's network: listeners.watch: auto finds the node's listeners too; list the pod's"
        );
    }
    let selected = Selected::select(Setting {
        choice: choice(config.sensor.strategy),
        scope,
        interfaces: &interfaces.list().await?,
        ignored,
        own_port: server.port(),
        reattach: config.sensor.reattach,
    })?;
    let sensor = &selected.sensor;
    if !selected.passed_over.is_empty() {
        let why = told(&selected.passed_over);
        tracing::warn!(%why, taken = sensor.strategy().name(), "the best sensor cannot be had");
    }
    if sensor.strategy() == Strategy::Counters {
        tracing::warn!("SYNs are not counted one by one: drains can end `unverified` at best");
        if !ignored.is_empty() {
            tracing::warn!("listeners.ignoreSources is without effect: the counters do not tell sources apart");
        }
    }
    if config.mode == Mode::Observe {
        tracing::info!("mode is observe: no hook is held, and nobody is told anything");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %config.server.address,
        strategy = sensor.strategy().name(),
        interfaces = ?sensor.interfaces(),
        "counting"
    );
    let cluster = cluster::cluster(&config);
    let routing = match &cluster {
        Some(_) if config.pod.ips.is_empty() => Ok(cluster::settings(&config, &interfaces.addresses().await?)),
        Some(_) => Ok(cluster::settings(&config, &[])),
        None if config.routing.enabled => Err(NoRouting::NoCluster),
        None => Err(NoRouting::Off),
    };
    let now = clock::now();
    let mut reader = Reader::new(selected, interfaces);
    probes::apply(&mut reader, &config.listeners.probes, None);
    probes::warn_of_unknown_callers(&reader, config.server.hook_from);
    let settings = settings(&config, routing);
    let agent = Agent {
        core: Core::new(settings.clone(), now),
        course: Course::new(&config, settings),
        events: PodEvents::of(&config).filter(|_| config.mode == Mode::Drain),
        observing: Observing::new(&config),
        state: Keeper::start(config.state.path.clone(), Arc::clone(&metrics)),
        cluster,
        reader,
        probes: config.listeners.probes.clone(),
        addresses,
        teller: proxy::Teller::start(proxy::Server::new(&config.proxy)),
        gate,
        knockers: Knockers::new(&config),
        waiting: BTreeMap::new(),
        callers: 0,
        started: now,
        logged: 0,
        said: loudness::Said::default(),
        metrics,
        told: 0,
        refused_told: 0,
    };
    let (events, state) = agent.drive(requests, terminate, interrupt, link_changes).await;
    let told = async {
        if let Some(mut events) = events {
            events.finish(GOODBYE).await;
        }
    };
    tokio::join!(server.stop(GOODBYE), told, state.finish(GOODBYE));
    Ok(())
}

struct Agent {
    core: Core,
    cluster: Option<Cluster>,
    reader: Reader,
    /// What the operator says of kubelet's probes.
    probes: Probes,
    /// The pod's own addresses, for the server (S10).
    addresses: watch::Sender<Vec<IpAddr>>,
    /// Tells the server in the pod.
    teller: proxy::Teller,
    gate: Gate,
    /// Who sends SYNs while a drain runs.
    knockers: Knockers,
    /// What is kept of drains for people.
    course: Course,
    /// Tells of drains in the cluster, where that is wanted.
    events: Option<PodEvents>,
    /// `mode: observe`.
    observing: Observing,
    /// Keeps their courses for the agent after this one.
    state: Keeper,
    waiting: BTreeMap<CallerId, oneshot::Sender<Arc<Verdict>>>,
    callers: u64,
    started: Monotonic,
    /// Journal entries that are in the log already, and how loud they were.
    logged: u64,
    said: loudness::Said,
    metrics: Arc<Metrics>,
    /// Drains that are in the metrics already.
    told: u64,
    /// The newest drain after whose end a refused connection has been told of.
    refused_told: u64,
}

impl Agent {
    async fn drive(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        mut terminate: Signal,
        mut interrupt: Signal,
        mut link_changes: LinkChanges,
    ) -> (Option<PodEvents>, Keeper) {
        self.handle(Event::Clock);
        loop {
            self.follow_sources();
            let free = self.carry_out().await;
            let stop = self.leaves(free);
            self.course.follow(&self.core, clock::now());
            self.tell_of_late(stop);
            if self.core.journal().recorded() > self.logged {
                // Answers leave first: writing the log takes longer than making them, and may have to wait.
                tokio::task::yield_now().await;
                self.tell();
            }
            if stop {
                self.tell_observation().await;
                return (self.events, self.state);
            }
            let due = self.core.poll_timeout();
            let timer = due.map(|due| instant(due - COARSE));
            let watchdog = self.watchdog();
            let staying = self.observing.until().map(instant);
            let sampling = self.sampling(due);
            tokio::select! {
                Some(request) = requests.recv() => self.serve(request).await,
                _ = terminate.recv() => self.terminate().await,
                _ = interrupt.recv() => self.terminate().await,
                events = cluster::events(&mut self.cluster) => self.cluster_says(events),
                (phase, outcome) = self.teller.next() => self.handle(Event::Told(phase, outcome)),
                reports = self.state.earlier() => self.course.recorder.earlier(reports),
                () = link_changes.next() => self.read(Depth::Listeners).await,
                () = sleep_until(watchdog.unwrap_or_else(Instant::now)), if watchdog.is_some() => {
                    self.read(Depth::Listeners).await;
                }
                () = sleep_until(sampling.unwrap_or_else(Instant::now)), if sampling.is_some() => {
                    self.course.sample(&self.core, &self.reader, clock::now());
                    self.metrics.sampled();
                }
                () = sleep_until(staying.unwrap_or_else(Instant::now)), if staying.is_some() => {}
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                    due.into_iter().for_each(clock::wait_until);
                    self.handle(Event::Clock);
                }
            }
        }
    }

    /// When the sensor is to be looked after while a drain runs, if nothing else asks for a reading: what takes our program
    /// away shall not keep it for longer. At rest the core's own readings are often enough.
    fn watchdog(&self) -> Option<Instant> {
        let evidence = self.core.evidence().filter(|_| self.core.is_draining())?;
        Some(instant(evidence.taken_at + WATCH))
    }

    /// When counts are next to be sampled for the report; not where the core is about to be due: the hook's answer comes first.
    fn sampling(&self, due: Option<Monotonic>) -> Option<Instant> {
        let next = self.course.recorder.next_sample()?;
        let busy = due.is_some_and(|due| next + BEFORE_DUE > due && due > next - BEFORE_DUE);
        (!busy).then(|| instant(next))
    }

    /// Does what the core wants done; `true` when that is to stop.
    async fn carry_out(&mut self) -> bool {
        let (mut exit, mut uncounted) = (false, Vec::new());
        while let Some(action) = self.core.poll() {
            match action {
                Action::Read(depth) => self.read(depth).await,
                Action::Watch(port) => {
                    if let Err(why) = self.reader.watch(port) {
                        uncounted.push((port, why));
                    }
                }
                Action::ObserveCluster(_)
                | Action::ForgetCluster
                | Action::ReadConsistently(_)
                | Action::AskFence(_) => {
                    if let Some(cluster) = &mut self.cluster {
                        cluster.carry_out(&action).await;
                    }
                }
                Action::ReadPod(id) => {
                    if let Some(cluster) = &mut self.cluster {
                        cluster.carry_out(&action).await;
                    } else {
                        let why = "the agent is in no cluster, or routing.enabled is false".to_owned();
                        self.handle(Event::PodRead(id, PodRead::Forbidden(why)));
                    }
                }
                Action::Tell(phase) => self.tell_server(phase),
                Action::Answer(caller, verdict) => {
                    if let Some(answer) = self.waiting.remove(&caller) {
                        self.follow_sources();
                        let verdict = Arc::new(self.with_sources((*verdict).clone()));
                        // A caller that has just gone is no failure.
                        drop(answer.send(verdict));
                    }
                }
                Action::Exit => {
                    exit = true;
                    break;
                }
            }
        }
        tell::of_uncounted(&uncounted);
        exit
    }

    /// Hands on what the cluster says, and says back what of it is of use from now on.
    fn cluster_says(&mut self, events: Vec<Event>) {
        for event in events {
            let said = match &event {
                Event::Cluster(_, said) => Some(Arc::clone(said)),
                _ => None,
            };
            if let (Some(cluster), Some(said)) = (&self.cluster, &said) {
                self.metrics.cluster_said(said, clock::now());
                cluster.before(said);
            }
            let before = self.core.node_tally();
            self.handle(event);
            if matches!(said.as_deref(), Some(ClusterEvent::AttemptThrough { .. })) {
                self.metrics.attempt_through(before, self.core.node_tally());
            }
            if let (Some(cluster), Some(said)) = (&mut self.cluster, &said) {
                cluster.after(said, &self.core, clock::now());
            }
        }
        if let Some(own) = self.cluster.as_mut().and_then(Cluster::take_probes) {
            probes::apply(&mut self.reader, &self.probes, Some(&own));
        }
    }

    /// Has the server in the pod told, and fails or restores the readiness that the agent answers for. Where there is
    /// neither, nothing was told, and nothing is said of it.
    fn tell_server(&mut self, phase: Phase) {
        let gated = self.gate.turn(phase);
        if self.teller.hears(phase) {
            self.teller.tell(phase);
        } else if gated {
            self.handle(Event::Told(phase, Ok(())));
        }
    }

    async fn read(&mut self, depth: Depth) {
        let begun = clock::now();
        let evidence = self.reader.read(depth, self.core.drain_span()).await;
        self.metrics.evidence_read(clock::now().since(begun));
        self.addresses.send_if_modified(|known| {
            let changed = known.as_slice() != self.reader.addresses();
            if changed {
                self.reader.addresses().clone_into(known);
            }
            changed
        });
        self.course.read(&evidence);
        // First: what ends a drain by this reading is to know what the reading says of the nodes.
        let contradictions = self.knock(&evidence);
        self.cluster_says(contradictions);
        self.handle(Event::Evidence(Box::new(evidence)));
    }

    async fn terminate(&mut self) {
        self.termination_began(Begun::Signal).await;
        self.handle(Event::Terminate);
    }

    fn handle(&mut self, event: Event) {
        self.core.handle(event, clock::now());
    }
}

/// Tokio's instant for a time of our clock: both are `CLOCK_MONOTONIC`, but tokio does not say so.
fn instant(time: Monotonic) -> Instant {
    Instant::now() + time.since(clock::now())
}
