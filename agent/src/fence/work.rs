//! The fence's loop: takes questions, serves while there are any, and rests in between.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    callers::Callers,
    desk::{self, Refused, Request},
    generation::longest_first_list,
    lease::{Lease, Tenure},
    look::{self, FamilyTrouble, FenceStatus, Lags},
    metrics::Metrics,
    progress::Progress,
    protocol::{Line, Question},
    rounds::{CallId, Pace, Rounds},
    session::{Next, Session, Settings},
    sight::{Seen, Sight},
};
use crate::{
    cluster::{Access, health::Connections},
    core::{
        clock::{Monotonic, millis},
        listener::Family,
    },
    drive::clock,
};

/// For how long the fence goes on after the last answer: in a rolling update the next question comes soon.
const LINGER: Duration = Duration::from_secs(10);

/// How long the objects may take to be made at the start.
const WARM: Duration = Duration::from_secs(20);

/// How often answers grow.
const TELL_EVERY: Duration = Duration::from_millis(20);

/// An answer takes no longer. No drain does.
const LONGEST: Duration = Duration::from_mins(15);

/// How long a connection to the API server may take.
const CONNECT: Duration = Duration::from_secs(2);

/// The loop.
pub(super) struct Work {
    access: Access,
    lease: Lease,
    settings: Settings,
    spacing: Duration,
    rounds: Rounds,
    lags: Lags,
    callers: Callers,
    answers: BTreeMap<CallId, Answer>,
    calls: u64,
    connections: Arc<Connections>,
    metrics: Arc<Metrics>,
    /// When the last answer ended, or the fence began to serve.
    idle_since: Instant,
}

struct Answer {
    caller: IpAddr,
    parts: mpsc::Sender<Bytes>,
    progress: Progress,
    at: Monotonic,
}

impl Work {
    pub(super) fn new(
        access: Access,
        lease: Lease,
        settings: Settings,
        pace: Pace,
        (callers, metrics): (Callers, Arc<Metrics>),
    ) -> Self {
        Self {
            access,
            lease,
            settings,
            spacing: pace.spacing,
            rounds: Rounds::new(pace),
            lags: Lags::default(),
            callers,
            answers: BTreeMap::new(),
            calls: 0,
            connections: Arc::default(),
            metrics,
            idle_since: Instant::now(),
        }
    }

    /// Serves until nobody can ask any more.
    pub(super) async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        if !self.warm(&mut requests).await {
            return;
        }
        loop {
            let Some(request) = requests.recv().await else { return };
            match request {
                Request::Stop => return,
                Request::Look { answer } => drop(answer.send(self.look(false))),
                Request::Ask { caller, question, answer } => {
                    let session = match self.enter(caller, &question) {
                        Ok(()) => self.begin().await.inspect_err(|_refused| self.callers.leave(caller)),
                        Err(refused) => Err(refused),
                    };
                    // Whoever asked may have gone, here and below.
                    match session {
                        Ok(session) => {
                            drop(answer.send(Ok(self.take(caller, &question))));
                            if !self.serve(session, &mut requests, None).await {
                                return;
                            }
                        }
                        Err(refused) => {
                            self.metrics.refused(&refused);
                            drop(answer.send(Err(refused)));
                        }
                    }
                }
            }
        }
    }

    /// Makes what is missing in the API, so that the first drain does not wait for it. Where another replica serves, it
    /// does.
    async fn warm(&mut self, requests: &mut mpsc::Receiver<Request>) -> bool {
        match self.begin().await {
            Ok(session) => self.serve(session, requests, Some(Instant::now() + WARM)).await,
            Err(refused) => {
                tracing::info!(why = %refused, "the fence's objects are not made now");
                true
            }
        }
    }

    /// Gets the Lease.
    async fn begin(&mut self) -> Result<Session, Refused> {
        let unable = |why: String| Refused::Unable(why);
        let client = self.access.client(CONNECT).await.map_err(|error| unable(error.to_string()))?;
        match self.lease.acquire(&client).await {
            Ok(Tenure::Ours(held)) => {
                if held.taken_from_another {
                    self.rounds.hold(clock::now());
                }
                self.idle_since = Instant::now();
                let (lease, settings) = (self.lease.clone(), self.settings.clone());
                let connections = Arc::clone(&self.connections);
                Ok(Session::begin(client, self.access.clone(), lease, held, settings, connections))
            }
            Ok(Tenure::Theirs { holder, address }) => Err(Refused::Elsewhere { holder, address }),
            Err(refusal) => Err(unable(refusal.words().to_owned())),
        }
    }

    /// Takes a question of a caller who has entered.
    fn take(&mut self, caller: IpAddr, question: &Question) -> mpsc::Receiver<Bytes> {
        self.calls += 1;
        let (call, now) = (CallId(self.calls), clock::now());
        self.rounds.ask(call, &question.families, Duration::from_millis(question.stand_ms).min(LONGEST), now);
        let (parts, received) = desk::answer();
        let first = Line::Taken { fence: self.lease.identity().to_owned() };
        // There is room: it is the first.
        drop(parts.try_send(written(&[first])));
        self.answers.insert(call, Answer { caller, parts, progress: Progress::default(), at: now });
        self.metrics.asked();
        tracing::debug!(%caller, pod = question.pod, "asked");
        received
    }

    /// Whether a question can be taken; if so, its caller has one more answer under way.
    fn enter(&mut self, caller: IpAddr, question: &Question) -> Result<(), Refused> {
        let longest_ms = millis(longest_first_list(self.spacing));
        match question.families.as_slice() {
            [_] => {}
            [one, other] if one != other => {}
            _ => return Err(Refused::Families),
        }
        if question.first_list_ms > longest_ms {
            return Err(Refused::FirstList { asked_ms: question.first_list_ms, longest_ms });
        }
        Ok(self.callers.enter(caller, clock::now())?)
    }

    /// Serves until some time after the last answer, or the Lease is lost; `until` only until everything is made. `false`
    /// when nobody can ask any more.
    async fn serve(
        &mut self,
        mut session: Session,
        requests: &mut mpsc::Receiver<Request>,
        until: Option<Instant>,
    ) -> bool {
        let mut warming = until;
        let mut tell_at = Instant::now();
        let goes_on = loop {
            let now = clock::now();
            session.work(&mut self.rounds, warming.is_some(), now);
            if Instant::now() >= tell_at {
                self.tell(now);
                session.want(&self.rounds, self.newest(now), now);
                tell_at = Instant::now() + TELL_EVERY;
            }
            if !self.answers.is_empty() {
                warming = None;
            }
            if warming.is_some_and(|until| session.is_settled(&self.rounds) || Instant::now() >= until) {
                break true;
            }
            if warming.is_none() && self.answers.is_empty() && self.idle_since.elapsed() >= LINGER {
                break true;
            }
            if session.is_over() {
                tracing::warn!("the Lease is lost, or could not be renewed in time: another replica serves, or may");
                break true;
            }
            let due = session.due(&self.rounds, now);
            let due = if self.answers.is_empty() { due } else { due.min(tell_at) };
            tokio::select! {
                request = requests.recv() => match request {
                    None | Some(Request::Stop) => break false,
                    Some(Request::Look { answer }) => drop(answer.send(self.look(true))),
                    Some(Request::Ask { caller, question, answer }) => {
                        let taken = self.enter(caller, &question).map(|()| self.take(caller, &question));
                        if let Err(refused) = &taken {
                            self.metrics.refused(refused);
                        }
                        drop(answer.send(taken));
                        let now = clock::now();
                        session.want(&self.rounds, now, now);
                    }
                },
                next = session.next() => match next {
                    Next::Sight(sight) => self.saw(sight),
                    Next::Done(done) => {
                        session.done(done, &mut self.rounds, clock::now());
                        self.lags.keep(&self.rounds);
                        let now = clock::now();
                        session.want(&self.rounds, self.newest(now), now);
                    }
                    Next::Broken => break true,
                },
                () = sleep_until(due) => {}
            }
        };
        self.rest();
        session.end().await;
        goes_on
    }

    fn rest(&mut self) {
        for (_, answer) in std::mem::take(&mut self.answers) {
            // One that has no room learns it by the connection's end.
            drop(answer.parts.try_send(written(&[Line::Moved])));
            self.callers.leave(answer.caller);
        }
        self.rounds.rest();
    }

    fn saw(&mut self, sight: Sight) {
        let Sight { node, family, seen } = sight;
        match seen {
            Seen::Opened(connection) => self.rounds.opened(&node, family, connection),
            Seen::Closed(connection) => self.rounds.closed(&node, family, connection),
            Seen::Reach(reach) => self.rounds.reach(&node, family, reach),
            Seen::Endpoints { connection, sent_at, endpoints } => {
                let now = clock::now();
                let showed = self.rounds.answered(&node, family, connection, sent_at, endpoints, now);
                if let Some(took) = showed {
                    self.lags.add(&node, family, millis(took));
                    self.metrics.showed(family, took);
                }
            }
        }
    }

    /// Tells everybody what is new.
    fn tell(&mut self, now: Monotonic) {
        let rounds = &self.rounds;
        let trouble = match (rounds.trouble(Family::V4), rounds.trouble(Family::V6)) {
            (Some(why), Some(_)) => Some(Line::Failed { why: why.to_owned() }),
            _ => None,
        };
        let mut ended = Vec::new();
        for (call, answer) in &mut self.answers {
            if answer.parts.is_closed() || now.since(answer.at) >= LONGEST {
                ended.push(*call);
                continue;
            }
            // Who does not read is told when he does.
            let Ok(room) = answer.parts.try_reserve() else { continue };
            if let Some(failed) = &trouble {
                // The agent goes on by itself, and asks again.
                room.send(written(std::slice::from_ref(failed)));
                ended.push(*call);
                continue;
            }
            let lines = answer.progress.news(*call, rounds, now);
            if !lines.is_empty() {
                room.send(written(&lines));
            }
            if answer.progress.done {
                ended.push(*call);
                self.metrics.answered(now.since(answer.at));
            }
        }
        for call in ended {
            self.rounds.leave(call);
            if let Some(answer) = self.answers.remove(&call) {
                self.callers.leave(answer.caller);
            }
            self.idle_since = Instant::now();
        }
        self.metrics.state(&self.rounds, self.callers.under_way());
    }

    fn newest(&self, now: Monotonic) -> Monotonic {
        self.answers.values().map(|answer| answer.at).max().unwrap_or(now)
    }

    fn look(&self, writes: bool) -> FenceStatus {
        let trouble =
            |family: Family| self.rounds.trouble(family).map(|why| FamilyTrouble { family, why: why.to_owned() });
        FenceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            identity: self.lease.identity().to_owned(),
            writes,
            answers: self.callers.under_way(),
            trouble: Family::ALL.into_iter().filter_map(trouble).collect(),
            nodes: look::nodes(&self.rounds, &self.lags, writes, clock::now()),
        }
    }
}

/// Lines as they go over the wire.
fn written(lines: &[Line]) -> Bytes {
    let mut text = BytesMut::new();
    for line in lines {
        match serde_json::to_vec(line) {
            Ok(line) => {
                text.extend_from_slice(&line);
                text.put_u8(b'\n');
            }
            Err(error) => tracing::error!(%error, "a line cannot be written as JSON"),
        }
    }
    text.freeze()
}
