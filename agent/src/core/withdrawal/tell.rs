//! What a verdict tells of the cluster, and what it may be called.

use std::collections::BTreeSet;

use super::{
    super::{
        clock::{Monotonic, millis},
        confirm::{Assumption, NodeState, Why},
        listener::Family,
        routing::State,
        verdict::{FenceTold, NodeEvidence, Nodes, NotObserved, Reason, Route, RouteState, Routing as Told},
    },
    Nodes as NodeList, Withdrawal,
};

/// How much an end by the conditions may claim of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim {
    /// What was not observed, or only waited for.
    pub(crate) not_observed: BTreeSet<NotObserved>,
    /// What the confirmations rest on.
    pub(crate) assumes: BTreeSet<Assumption>,
    /// Some node was confirmed by something weaker than the fence.
    weaker: bool,
}

impl Claim {
    /// The reason of a drain that ends by its conditions, with everything else observed.
    pub(crate) fn reason(&self) -> Reason {
        match (self.not_observed.is_empty(), self.weaker) {
            (false, _) => Reason::Unverified,
            (true, true) => Reason::Synced,
            (true, false) => Reason::RoutedAway,
        }
    }
}

impl Withdrawal {
    /// What may be claimed.
    pub(crate) fn told(&self) -> Claim {
        let mut claim = Claim { not_observed: self.unobserved_paths(), ..Claim::default() };
        for family in self.routing.families() {
            for (node, state) in self.confirmations.states(family) {
                let name = node.to_string();
                match state {
                    NodeState::Confirmed { by, assumes } => {
                        claim.weaker |= by.name() != "fence";
                        claim.assumes.extend(assumes);
                    }
                    NodeState::Waited => {
                        claim.not_observed.insert(unobserved(
                            "sync",
                            Some((name, family)),
                            "only waited for".to_owned(),
                        ));
                    }
                    NodeState::Pending => {
                        claim.not_observed.insert(unobserved("node", Some((name, family)), "not confirmed".to_owned()));
                    }
                    NodeState::Unobservable { why } => {
                        claim.not_observed.insert(unobserved("node", Some((name, family)), words(&why)));
                    }
                }
            }
        }
        claim
    }

    /// The assumptions, as verdicts write them.
    pub(crate) fn assumes(&self) -> Vec<String> {
        self.told().assumes.into_iter().map(|assumption| assumption.text(&self.settings.bounds)).collect()
    }

    /// The verdict's part on routing.
    pub(crate) fn report(&self, started: Monotonic) -> Told {
        let services = self.routing.routes().map(|route| Route {
            name: route.service.to_string(),
            port: route.port.name.to_string(),
            family: route.family,
            state: if route.state.is_routed() { RouteState::Routed } else { RouteState::Withdrawn },
            since_ms: match route.state {
                State::Routed => None,
                State::Withdrawn { since } => Some(millis(since.since(started))),
            },
        });
        let mut nodes = Nodes::default();
        let mut evidence = Vec::new();
        for family in self.routing.families() {
            let tally = self.confirmations.tally(family);
            nodes.total += tally.total();
            nodes.confirmed += tally.confirmed;
            nodes.assumed += tally.assumed;
            nodes.waited += tally.waited;
            nodes.pending += tally.pending;
            nodes.unobservable += tally.unobservable;
            evidence.extend(self.confirmations.states(family).filter_map(|(node, state)| {
                let (by, assumes) = match state {
                    NodeState::Confirmed { by, assumes } => (by.name(), assumes),
                    NodeState::Waited => ("waited", [].as_slice()),
                    NodeState::Pending | NodeState::Unobservable { .. } => return None,
                };
                let assumes = assumes.iter().map(|assumption| assumption.text(&self.settings.bounds)).collect();
                Some(NodeEvidence { node: node.to_string(), family, by: by.to_owned(), assumes })
            }));
        }
        Told { services: services.collect(), nodes, evidence, fence: self.fence_told() }
    }

    /// Where there is a fence, what became of it.
    fn fence_told(&self) -> Option<FenceTold> {
        let why = (!self.fence.answers).then(|| self.fence_trouble());
        self.settings.fence.then_some(FenceTold { answers: self.fence.answers, why })
    }

    fn fence_trouble(&self) -> String {
        self.fence.trouble.clone().unwrap_or_else(|| "it has not answered yet".to_owned())
    }

    /// Whether anything is missing that the fence would have shown: with what the nodes' own health servers say nothing is.
    fn misses_the_fence(&self) -> bool {
        match &self.nodes {
            NodeList::Unreadable(_) => true,
            NodeList::Awaited => false,
            NodeList::Listed(_) | NodeList::ByFence(..) => self.tally().pending > 0,
        }
    }

    /// W6, W8, C9, and the list of nodes.
    fn unobserved_paths(&self) -> BTreeSet<NotObserved> {
        let accepted = |path: &NotObserved| {
            path.name.as_ref().is_some_and(|name| self.settings.accept.contains(&format!("{}/{name}", path.what)))
        };
        let mut paths: BTreeSet<_> = self.routing.not_observed().into_iter().filter(|path| !accepted(path)).collect();
        if self.listed_at.is_some() && !self.routing.has_listed_the_pod() {
            let why =
                "no EndpointSlice has listed the pod in this drain: what leads to it, if anything does, is not known";
            paths.insert(unobserved("routing", None, why.to_owned()));
        }
        for family in self.routing.unlisted_families() {
            let why =
                format!("no EndpointSlice of {family} has listed the pod in this drain, and its Service has some");
            paths.insert(NotObserved { family: Some(family), ..unobserved("routing", None, why) });
        }
        paths.extend(self.pod_paths.iter().filter(|path| !accepted(path)).cloned());
        if let Some((why, _)) = &self.blind {
            paths.insert(unobserved("api", None, why.clone()));
        } else if let Some(why) = self.read.forbidden() {
            paths.insert(unobserved("api", None, why.to_owned()));
        }
        match &self.nodes {
            NodeList::Listed(nodes) if self.are_too_many(nodes) => {
                let why = format!("{} nodes are more than routing.maxNodes; a fence has no such limit", nodes.len());
                paths.insert(unobserved("nodes", None, why));
            }
            NodeList::Listed(_) | NodeList::ByFence(..) => {}
            NodeList::Awaited => {
                paths.insert(unobserved("nodes", None, "they have not been listed".to_owned()));
            }
            NodeList::Unreadable(why) => {
                paths.insert(unobserved("nodes", None, why.clone()));
            }
        }
        if self.settings.fence && !self.fence.answers && self.misses_the_fence() {
            paths.insert(unobserved("fence", None, self.fence_trouble()));
        }
        if self.blind.is_none() && self.is_unrouted() && self.routing.families().is_empty() {
            let why = "no Service that kube-proxy serves lists the pod, so no node was asked".to_owned();
            paths.insert(unobserved("nodes", None, why));
        }
        paths
    }
}

pub(super) fn unobserved(what: &str, node: Option<(String, Family)>, why: String) -> NotObserved {
    let (name, family) = node.unzip();
    NotObserved { what: what.to_owned(), name, family, why }
}

fn words(why: &Why) -> String {
    match why {
        Why::NoStatus(words) | Why::Silent(words) => words.clone(),
        Why::Gone => "its Node object is gone".to_owned(),
    }
}
