//! The promises, held against what the world knows to be true.

use std::{fmt, time::Duration};

use lastsyn::core::{
    clock::Monotonic,
    listener::Family,
    verdict::{NotObserved, Reason, Verdict},
};

use super::{
    agent::{Agent, HANDSHAKE_GRACE, QUIET_PERIOD},
    api::Content,
    kube_proxy::KubeProxy,
    node::{Health, NodeId},
    plan::What,
    routes::HOME,
    timeline::name,
    world::World,
};

/// How much longer than its own bound a caller waits for the agent to say so itself.
pub(super) const CALLERS_PATIENCE: Duration = Duration::from_secs(1);

/// Says what is not as it is to be.
type Check = fn(&World<'_>, &Agent, &Verdict) -> Option<String>;

/// A promise that was broken, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    what: String,
    kind: String,
}

impl Failure {
    pub(super) fn new(what: &str) -> Self {
        // Which node or time it was does not make it another failure.
        let kind = what.split(':').next().unwrap_or_default().to_owned();
        Self { what: what.to_owned(), kind }
    }

    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Whether the end claims that no node routes to the pod.
pub(super) fn claims(world: &World<'_>) -> bool {
    let Some(ended) = &world.ended else { return false };
    match &ended.verdict {
        Some(verdict) => matches!(verdict.reason, Reason::RoutedAway | Reason::Synced),
        None => world.naive.as_ref().is_some_and(super::naive::Naive::claims),
    }
}

/// Whether some node routes to the pod although the end claimed that it does not, and nothing that the claim names excuses
/// it. A claim speaks of the API as of the consistent read: what was written between that and the end is as if it had not
/// been.
pub(super) fn claim(world: &World<'_>) -> Option<Failure> {
    if !claims(world) {
        return None;
    }
    for proxy in &world.proxies {
        for family in world.plan.families {
            if routes(world, proxy, *family) && !excused(world, proxy.id, family.name()) {
                let ended = world.ended.as_ref()?;
                let after = world.now.since(ended.at);
                let reason = ended.verdict.as_ref().map_or("the naive rule's claim", |verdict| verdict.reason.name());
                let node = name(proxy.id);
                return Some(Failure::new(&format!(
                    "{reason} while a node routes: {node}, {family}, {after:?} after the end"
                )));
            }
        }
    }
    None
}

fn routes(world: &World<'_>, proxy: &KubeProxy, family: Family) -> bool {
    let written = [world.api.written(), super::api::count(world.api.services.len())];
    let written = world.observer.last_read.filter(|_| world.naive.is_none()).unwrap_or(written);
    proxy.rules(family).route && proxy.routes_as_of(family, written, &world.api)
}

/// Whether a connection that comes over this node after the end breaks what the end claimed.
pub(super) fn is_broken_by(world: &World<'_>, node: NodeId, family: Family) -> bool {
    claims(world) && routes(world, &world.proxies[node.0], family) && !excused(world, node, family.name())
}

/// Whether the node has broken an assumption that its confirmation names.
fn excused(world: &World<'_>, node: NodeId, family: &str) -> bool {
    let verdict = world.ended.as_ref().and_then(|ended| ended.verdict.as_ref());
    let Some(verdict) = verdict else { return false };
    let broken = world.proxies[node.0].broken(&world.api, world.now);
    let node = name(node);
    let evidence = verdict.routing.iter().flat_map(|routing| &routing.evidence);
    let own = evidence.into_iter().find(|evidence| evidence.node == node && evidence.family.name() == family);
    let assumes = own.map_or(&verdict.assumes, |evidence| &evidence.assumes);
    assumes.iter().any(|assumption| broken.breaks(assumption))
}

/// Everything that is to be so at an end.
pub(super) fn end(world: &World<'_>, verdict: &Verdict) -> Option<Failure> {
    let agent = world.agent.as_ref()?;
    let bound = verdict.reason == Reason::Bound;
    let checks: &[Check] = if bound { &[length, words] } else { &[length, words, silent, quiet, pending] };
    checks.iter().find_map(|check| check(world, agent, verdict)).map(|what| Failure::new(&what))
}

/// S1.
fn length(world: &World<'_>, agent: &Agent, verdict: &Verdict) -> Option<String> {
    let called_at = agent.called_at?;
    let lasted = world.now.since(called_at);
    let plan = &world.plan.agent;
    let bound = verdict.reason == Reason::Bound;
    if !bound && lasted < plan.min_wait.max(QUIET_PERIOD) {
        return Some(format!("ended too early: after {lasted:?}"));
    }
    if bound && lasted < plan.max_wait {
        return Some(format!("the bound came too early: after {lasted:?}"));
    }
    (lasted > plan.max_wait + agent.lateness).then(|| format!("ended after maxWait: after {lasted:?}"))
}

/// What the verdict says is one story.
fn words(_: &World<'_>, _: &Agent, verdict: &Verdict) -> Option<String> {
    let unseen = !verdict.not_observed.is_empty();
    let claims = matches!(verdict.reason, Reason::RoutedAway | Reason::Synced);
    if claims && unseen {
        return Some(format!("{} with something not observed: {:?}", verdict.reason.name(), verdict.not_observed));
    }
    if verdict.reason == Reason::Unverified && !unseen {
        return Some("unverified with everything observed".to_owned());
    }
    let Some(routing) = &verdict.routing else { return Some("no word of routing".to_owned()) };
    if verdict.reason == Reason::Bound {
        return None;
    }
    let nodes = &routing.nodes;
    if claims && (nodes.pending + nodes.waited + nodes.unobservable > 0 || nodes.total == 0) {
        return Some(format!("{} with a node that is not confirmed: {nodes:?}", verdict.reason.name()));
    }
    if routing.evidence.iter().flat_map(|node| &node.assumes).any(|assumption| !verdict.assumes.contains(assumption)) {
        return Some(format!("a node's assumption is not named: {:?}", verdict.assumes));
    }
    let by_fence = routing.evidence.iter().all(|node| node.by == "fence");
    if claims && by_fence != (verdict.reason == Reason::RoutedAway) {
        return Some(format!("{} by the wrong evidence: {:?}", verdict.reason.name(), routing.evidence));
    }
    (claims && verdict.assumes.is_empty()).then(|| "a claim that assumes nothing".to_owned())
}

/// C12: a node that gives no answer is awaited where any has given a status.
fn silent(world: &World<'_>, _: &Agent, verdict: &Verdict) -> Option<String> {
    let passed_over = |proxy: &&KubeProxy| {
        let silent = proxy.profile.health != Health::NoStatus && !proxy.has_left();
        let node = name(proxy.id);
        let unseen = |thing: &NotObserved| thing.what == "node" && thing.name.as_ref() == Some(&node);
        silent && verdict.not_observed.iter().any(unseen)
    };
    let proxy = world.proxies.iter().find(passed_over).filter(|_| world.observer.status_given)?;
    Some(format!("ended without a node that gave no answer: {}", name(proxy.id)))
}

/// E1 to E4, as of the last reading before the end.
fn quiet(world: &World<'_>, agent: &Agent, verdict: &Verdict) -> Option<String> {
    let read_at = agent.read_at;
    if world.now.since(read_at) > agent.lateness {
        return Some(format!("ended without a new reading: the last is {:?} old", world.now.since(read_at)));
    }
    let seen = world.pod.came.iter().rev().find(|came| came.seen && came.at <= read_at);
    if let Some(came) = seen
        && read_at.since(came.at) < QUIET_PERIOD
    {
        return Some(format!(
            "ended although a SYN came within the quiet period: {:?} before",
            world.now.since(came.at)
        ));
    }
    // What a blind sensor has missed, the counters of dropped SYNs alone are not taken to tell.
    let blind = world.plan.steps.iter().any(|step| matches!(step.what, What::SensorGap(_, false)));
    if !blind && world.clients.will_try_again(read_at) {
        return Some("ended although a client whose SYN was dropped will try again".to_owned());
    }
    if !blind && world.pod.would_reset(HANDSHAKE_GRACE, read_at) {
        return Some("ended although a handshake is under way".to_owned());
    }
    if read_at < world.now {
        return None;
    }
    if world.pod.queue > 0 {
        return Some("ended although a connection waits to be accepted".to_owned());
    }
    if world.plan.agent.exit_at_connections.is_some_and(|most| world.pod.established > most) {
        return Some(format!("ended with {} connections", world.pod.established));
    }
    let missed = world.pod.missed > world.pod.unfinished;
    (missed && verdict.reason != Reason::Unverified)
        .then(|| format!("{} with a sensor that missed {}", verdict.reason.name(), world.pod.missed))
}

/// Until when some slice of the first Service listed the pod ready, as of the last consistent read, or without one as of
/// what the watch has delivered: what was written after it the agent cannot know.
fn listed_ready(world: &World<'_>) -> Option<Monotonic> {
    let ready = |received: &u32| {
        world.api.versions(*received).iter().any(|version| match world.api.content(*version) {
            Some(Content::Slice(body)) if body.service == 0 => {
                body.endpoints.iter().any(|entry| entry.pod == super::routes::POD && entry.ready.unwrap_or(true))
            }
            _ => false,
        })
    };
    let written = world.observer.last_read.map_or(world.observer.slices_delivered(), |[slices, _]| slices);
    let last = (0..=written).rev().find(ready)?;
    Some(if last == written { world.now } else { world.api.slices[last as usize].at })
}

/// E6: the load balancer.
fn pending(world: &World<'_>, _: &Agent, verdict: &Verdict) -> Option<String> {
    let plan = &world.plan.agent;
    // A Service that had dropped the pod before the first list is not known to have listed it.
    let mut listed = verdict.routing.iter().flat_map(|routing| &routing.services);
    let known = listed.any(|route| route.name == super::translate::service_name(0).0);
    let with_port = known && world.plan.services.iter().any(|service| service.health_check_node_port.is_some());
    let policy_steps = world.plan.steps.iter().any(|step| matches!(step.what, What::Policy(..)));
    if !with_port || policy_steps || plan.services_forbidden {
        return None;
    }
    let since = listed_ready(world).map(|until| world.now.since(until));
    if let Some(since) = since.filter(|since| *since < plan.window) {
        return Some(format!("ended before the load balancer's window: {since:?} after the withdrawal"));
    }
    let undisturbed = world.plan.steps.iter().all(|step| match step.what {
        What::Freeze(node, _)
        | What::Kill(node, ..)
        | What::Cut(node, ..)
        | What::FailSyncs(node, _)
        | What::BreakConnection(node) => node != HOME,
        What::AgentStands(_) | What::AgentRestarts(_) | What::Move(..) | What::Copy(..) => false,
        // The port speaks of the other pods on the node too.
        What::Pod(pod, _) => pod == super::routes::POD,
        _ => true,
    });
    // The window is meant for a node that is not slow itself.
    let home = &world.plan.nodes[HOME.0];
    let slow = home.lag.1 + home.min_interval + home.sync.1 > Duration::from_millis(2200);
    let sends = world.balancer.as_ref().is_some_and(super::balancer::Balancer::sends);
    let to_others = world.proxies[HOME.0].local_endpoints(0) > 0;
    (undisturbed && !slow && sends && !to_others)
        .then(|| "ended although the load balancer still sends to this node".to_owned())
}
