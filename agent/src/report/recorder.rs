//! What is kept of a drain while it runs, for its report and for the status. Bounded, whatever comes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    bins::{Bins, NARROWEST},
    course::{About, Entry, FORMAT, Held, LeftOut, NodesAt, Pod, Report},
};
use crate::core::{
    clock::{Monotonic, millis},
    event::PortAttempts,
    journal::Transition,
    listener::{Family, Port},
    verdict::{Condition, Nodes, Verdict},
};

/// How many drains are kept. A pod has one; a container that is restarted over and over has many.
const DRAINS: usize = 4;
/// How many entries of one drain are kept: the first of them, and the newest.
const ENTRIES: usize = 400;
/// How many changes of the nodes' state of one drain.
const NODES: usize = 200;
/// How many times at which one condition held.
const SPANS: usize = 50;
/// For how long after a drain's end its attempts are still sampled, in milliseconds.
const AFTER_END: u64 = 60_000;

/// Keeps the courses of the last drains.
#[derive(Debug)]
pub struct Recorder {
    pod: Pod,
    /// Of an agent before this one.
    earlier: Vec<Report>,
    courses: VecDeque<Course>,
}

/// One drain's course.
#[derive(Clone, Debug)]
struct Course {
    started: Monotonic,
    verdict: Option<Verdict>,
    conditions: BTreeMap<Condition, Spans>,
    bins: Bins,
    families: BTreeSet<Family>,
    /// When attempts were last sampled.
    sampled: Option<Monotonic>,
    nodes: Vec<NodesAt>,
    entries: Vec<Entry>,
    routed: BTreeSet<String>,
    withdrawn: Option<Monotonic>,
    dropped: Option<Monotonic>,
    left_out: LeftOut,
}

/// When a condition held, and since when it does or does not.
#[derive(Clone, Debug, Default)]
struct Spans {
    past: Vec<(u64, u64)>,
    since: Option<u64>,
}

/// How a condition stands: since when, from the hook's call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it holds the end.
    pub holds: bool,
    /// Since when it does, or does not; 0 where it has never changed.
    pub since_ms: u64,
}

impl Recorder {
    /// Nothing is kept yet.
    pub fn new(pod: Pod) -> Self {
        Self { pod, earlier: Vec::new(), courses: VecDeque::new() }
    }

    /// What an agent before this one has told of the drains of this pod, oldest first.
    pub fn earlier(&mut self, mut reports: Vec<Report>) {
        reports.retain(|report| report.pod == self.pod);
        self.earlier = reports;
    }

    /// A drain is under way since `started`, and these conditions hold it now.
    pub fn holding(&mut self, started: Monotonic, holding: &[Condition], now: Monotonic) {
        let at = millis(now.since(started));
        let course = self.course(started);
        for condition in Condition::ALL {
            let spans = course.conditions.entry(condition).or_default();
            spans.turn(holding.contains(&condition), at, &mut course.left_out);
        }
    }

    /// How the nodes stand now.
    pub fn nodes(&mut self, nodes: Nodes, now: Monotonic) {
        let Some(course) = self.under_way() else { return };
        let before = course.nodes.last().map_or(Nodes::default(), |last| last.nodes);
        if nodes == before {
            return;
        }
        if course.nodes.len() == NODES {
            // The last one stays the newest.
            course.nodes.pop();
            course.left_out.nodes += 1;
        }
        course.nodes.push(NodesAt { at_ms: millis(now.since(course.started)), nodes });
    }

    /// Something happened, which the journal has.
    pub fn happened(&mut self, at: Monotonic, what: &Transition) {
        // What comes after a drain is of it too, until the next.
        let Some(course) = self.courses.back_mut() else { return };
        match what {
            Transition::SynsDropped(_) => course.dropped = Some(at),
            Transition::Routed(..) => {
                course.routed.insert(route(what));
                course.withdrawn = None;
            }
            Transition::Withdrawn(..) => {
                course.routed.remove(&route(what));
                course.withdrawn = course.routed.is_empty().then_some(at);
            }
            _ => {}
        }
        if at < course.started {
            return;
        }
        if course.entries.len() == ENTRIES {
            // The first ones tell how it began.
            course.entries.remove(ENTRIES / 4);
            course.left_out.entries += 1;
        }
        let at_ms = millis(at.since(course.started));
        course.entries.push(Entry { at_ms, about: about(what), what: what.to_string() });
    }

    /// When attempts are next to be sampled: while a drain runs, and for a while after it.
    pub fn next_sample(&self) -> Option<Monotonic> {
        let course = self.courses.back()?;
        let until = course.verdict.as_ref().map(|verdict| verdict.duration_ms.saturating_add(AFTER_END));
        let next =
            course.sampled.map_or(course.started, |sampled| sampled + std::time::Duration::from_millis(NARROWEST));
        until.is_none_or(|until| millis(next.since(course.started)) < until).then_some(next)
    }

    /// A sample of what has reached each port, in all; `families` are those that the pod has an address in.
    pub fn sample(
        &mut self,
        totals: &BTreeMap<Port, PortAttempts>,
        families: impl IntoIterator<Item = Family>,
        at: Monotonic,
    ) {
        if self.next_sample().is_none() {
            return;
        }
        let Some(course) = self.courses.back_mut().filter(|course| at >= course.started) else { return };
        course.families.extend(families);
        course.bins.sample(millis(at.since(course.started)), totals);
        course.sampled = course.sampled.max(Some(at));
    }

    /// The drain has ended.
    pub fn ended(&mut self, verdict: Verdict) {
        let Some(course) = self.under_way() else { return };
        for spans in course.conditions.values_mut() {
            spans.turn(false, verdict.duration_ms, &mut course.left_out);
        }
        course.verdict = Some(verdict);
    }

    /// The reports of the last drains that have ended, oldest first. `completed` is the last one's verdict with what came after it.
    pub fn reports(&self, completed: Option<Verdict>) -> Vec<Report> {
        let ended = || self.courses.iter().filter(|course| course.verdict.is_some());
        let mut reports: Vec<Report> = ended().filter_map(|course| course.report(&self.pod)).collect();
        if let (Some(last), Some(completed)) = (reports.last_mut(), completed)
            && last.verdict.started_at == completed.started_at
        {
            last.verdict = completed;
        }
        reports.splice(..0, self.earlier.iter().cloned());
        reports.drain(..reports.len().saturating_sub(DRAINS));
        reports
    }

    /// How a condition of the drain under way stands.
    pub fn standing(&self, condition: Condition) -> Standing {
        let spans = self.courses.back().and_then(|course| course.conditions.get(&condition));
        spans.map_or_else(Standing::default, Spans::standing)
    }

    /// What leads to the pod, in words.
    pub fn routed(&self) -> impl Iterator<Item = &str> {
        self.courses.back().into_iter().flat_map(|course| course.routed.iter().map(String::as_str))
    }

    /// Since when nothing does, as far as anything did.
    pub fn withdrawn(&self) -> Option<Monotonic> {
        self.courses.back()?.withdrawn
    }

    /// When it was last seen that SYNs were dropped unanswered.
    pub fn dropped(&self) -> Option<Monotonic> {
        self.courses.back()?.dropped
    }

    fn under_way(&mut self) -> Option<&mut Course> {
        self.courses.back_mut().filter(|course| course.verdict.is_none())
    }

    fn course(&mut self, started: Monotonic) -> &mut Course {
        if self.courses.back().is_none_or(|course| course.started != started) {
            // What had dropped SYNs may have done so just before the call.
            let dropped = self.courses.back().and_then(|course| course.dropped);
            self.courses.push_back(Course::begun(started, dropped));
            if self.courses.len() > DRAINS {
                self.courses.pop_front();
            }
        }
        let last = self.courses.len() - 1;
        // There is one: it was just looked at or put there.
        #[expect(clippy::indexing_slicing, reason = "the queue is not empty, and `last` is its last place")]
        &mut self.courses[last]
    }
}

impl Course {
    fn begun(started: Monotonic, dropped: Option<Monotonic>) -> Self {
        Self {
            started,
            verdict: None,
            conditions: BTreeMap::new(),
            bins: Bins::default(),
            families: BTreeSet::new(),
            sampled: None,
            nodes: Vec::new(),
            entries: Vec::new(),
            routed: BTreeSet::new(),
            withdrawn: None,
            dropped,
            left_out: LeftOut::default(),
        }
    }

    fn report(&self, pod: &Pod) -> Option<Report> {
        let held = |(condition, spans): (&Condition, &Spans)| Held { condition: *condition, spans: spans.past.clone() };
        Some(Report {
            format: FORMAT,
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            pod: pod.clone(),
            verdict: self.verdict.clone()?,
            conditions: self.conditions.iter().filter(|(_, spans)| !spans.past.is_empty()).map(held).collect(),
            attempts: self.bins.told(|family| self.families.contains(&family)),
            nodes: self.nodes.clone(),
            entries: self.entries.clone(),
            left_out: self.left_out,
        })
    }
}

impl Spans {
    fn turn(&mut self, holds: bool, at: u64, left_out: &mut LeftOut) {
        match (self.since, holds) {
            (None, true) => self.since = Some(at),
            (Some(since), false) => {
                self.since = None;
                if self.past.len() < SPANS {
                    self.past.push((since, at));
                } else if let Some((_, to)) = self.past.last_mut() {
                    *to = at;
                    left_out.spans += 1;
                }
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn standing(&self) -> Standing {
        match self.since {
            Some(since_ms) => Standing { holds: true, since_ms },
            None => Standing { holds: false, since_ms: self.past.last().map_or(0, |(_, to)| *to) },
        }
    }
}

/// Which route an entry is about: what its words begin with.
fn route(what: &Transition) -> String {
    let words = what.to_string();
    words.split(" leads to").next().unwrap_or_default().to_owned()
}

fn about(what: &Transition) -> About {
    match what {
        Transition::ListenerFound(_) | Transition::ListenerClosed(_) | Transition::ListenerReopened(_) => {
            About::Listener
        }
        Transition::SensorProven(_)
        | Transition::SensorUnproven(_)
        | Transition::SensorBlind(_)
        | Transition::SynsDropped(_)
        | Transition::SocketsUnreadable(_)
        | Transition::CountersUnreadable(_) => About::Sensor,
        Transition::DrainStarted(_)
        | Transition::CallerJoined(_)
        | Transition::CallerLeft(_)
        | Transition::Terminating
        | Transition::TerminationShown(_)
        | Transition::DrainEnded(_)
        | Transition::Stopping => About::Hook,
        Transition::Told(_) | Transition::NotTold(..) => About::Server,
        Transition::RelevantChange(_)
        | Transition::Routed(..)
        | Transition::Withdrawn(..)
        | Transition::SlicesUnreadable(_) => About::Service,
        Transition::NodesSettled
        | Transition::Contradicted(..)
        | Transition::ReadAgrees
        | Transition::WatchBehind
        | Transition::ReadForbidden(_)
        | Transition::FenceAnswers
        | Transition::FenceFails(_) => About::Node,
    }
}
