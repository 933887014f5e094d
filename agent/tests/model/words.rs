//! A case and a trace in words, for people.

use std::fmt;

use lastsyn::core::confirm::By;

use crate::{
    kube_proxy::Step,
    service::Writes,
    setting::{Assumed, Effect, FirstList, Limits, Queue, Rule, Setting, Writing},
    witness::Relevance,
    world::{Action, World},
};

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("time passes"),
            Self::Write(value) => write!(f, "API: {value}"),
            Self::OtherMarker => f.write_str("API: the fence writes the marker for another drain"),
            Self::Proxy(step) => write!(f, "kube-proxy: {step}"),
            Self::AgentSees => f.write_str("agent: its watch delivers the next write"),
            Self::AgentLists(version) => write!(f, "agent: its watch is lost, and {} replaces it", list(*version)),
            Self::Send => f.write_str("agent: asks for the node's health"),
            Self::Answer => f.write_str("agent: has the answer"),
            Self::Poll => f.write_str("agent: asks for the node's health, and has the answer"),
            Self::AskFence => f.write_str("agent: asks the fence"),
            Self::FenceWrites => f.write_str("API: the fence writes a marker"),
            Self::FenceTells => f.write_str("fence: sees the last marker at the node, and tells the agent"),
            Self::Verdict => f.write_str("agent: ends the drain"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receive => f.write_str("its watch puts the next write into the queue"),
            Self::Handle => f.write_str("its handlers take the next write"),
            Self::HandleListed(object) => write!(f, "its handlers take {object} of the list"),
            Self::Relist(version) => write!(f, "its watch is lost, and {} replaces it", list(*version)),
            Self::Unrelated => f.write_str("another Service's change asks for a sync"),
            Self::StartSync => f.write_str("a sync takes its snapshot"),
            Self::WritePod => f.write_str("the sync writes the pod's Service"),
            Self::WriteMarker => f.write_str("the sync writes the fence's Service"),
            Self::EndSync => f.write_str("the sync has written all, and stamps"),
            Self::FailSync => f.write_str("the sync fails, and is to be tried again"),
            Self::Die { written: false } => f.write_str("the process dies"),
            Self::Die { written: true } => f.write_str("the process dies when its sync has written all"),
            Self::Start => f.write_str("a process starts, and stamps"),
            Self::FirstList(version) => write!(f, "{} is its first", list(*version)),
        }
    }
}

fn list(version: usize) -> String {
    match version {
        0 => "a list from before the first write".to_owned(),
        1 => "a list with the first write".to_owned(),
        _ => format!("a list with the first {version} writes"),
    }
}

/// One step of a trace, with its tick and what it does to the node's rules.
pub(crate) fn step(before: &World, action: Option<Action>, after: &World) -> String {
    let ends = before.agent.is_some() && after.agent.is_none();
    let routed = match (before.rules.route, after.rules.route) {
        (true, false) => "; the node no longer routes to the pod",
        (false, true) => "; the node routes to the pod again",
        (true, true) if ends => "; the node still routes to the pod",
        _ => "",
    };
    let action = action.map(|action| action.to_string()).unwrap_or_default();
    format!("{} {action}{routed}", after.now)
}

impl Setting {
    /// The rule that is judged.
    pub(crate) fn rule_in_words(&self) -> String {
        let rule = match self.rule {
            Rule::Core(By::Syncs) => "C5 syncs",
            Rule::Core(By::SettledByEdge) => "C6 settled, by one late edge",
            Rule::Core(By::SettledByWait) => "C6 settled, by an edge and a wait",
            Rule::Core(By::Waited) => "C7 waited",
            Rule::Core(By::Fence) | Rule::Fence { markers: 2 } => "C4 fence",
            Rule::Fence { .. } => "a fence of one marker",
            Rule::NewerStamp => "a stamp newer than the change",
            Rule::Settle => "an edge, then a time without another",
            Rule::Healthy => "healthy for healthTimeout",
        };
        let relevance = match self.relevance {
            Relevance::Core => "",
            Relevance::OtherCopiesIgnored => "; other slices' copies of the witness are ignored",
            Relevance::VersionsThenInForceIgnored => "; the versions in force at the last relevant change are ignored",
            Relevance::SomeSliceEachTime => "; the witness is ready in some slice each time",
            Relevance::NotServingNow => "; no witness where the pod does not serve now",
            Relevance::OnlyUnWithdrawals => "; only un-withdrawals are relevant",
            Relevance::WitnessOnAnotherNode => "; under Local a witness on another node",
            Relevance::WitnessOfAnotherPort => "; a witness of another port",
        };
        let read = if self.consistent_read { "" } else { "; without the consistent read" };
        let lag = if self.lag_unknown { "; without waiting for watchLag" } else { "" };
        format!("{rule}{relevance}{read}{lag}")
    }

    /// What the world keeps to.
    pub(crate) fn assumed_in_words(&self) -> Vec<&'static str> {
        let Assumed { watch_lag, first_list, first_list_comes, sync_time, min_sync } = self.assumed;
        let syncs_count = matches!(self.rule, Rule::Core(By::SettledByWait | By::Waited));
        let said = [
            (watch_lag == Some(0)).then_some("watchLag 0"),
            watch_lag.is_some_and(|lag| lag > 0).then_some("watchLag"),
            (watch_lag.is_none() && !matches!(first_list, FirstList::Any)).then_some("firstList"),
            first_list_comes.is_some().then_some("a first list in time"),
            sync_time.is_some().then_some("syncTime"),
            min_sync.is_some().then_some("minSync"),
            (syncs_count && self.limits.failures == 0).then_some("noFailedSync"),
            self.restarts_unseen.then_some("restarts that no connection shows"),
        ];
        said.into_iter().flatten().collect()
    }

    /// How large the world is, and what goes wrong in it.
    pub(crate) fn world_in_words(&self) -> String {
        let Limits { ticks, writes, unrelated, restarts, failures, relists, agent_relists } = self.limits;
        let count = |count: u8, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let in_order = match self.service.writes {
            Writes::InOrder(all) => Some(all.len()),
            Writes::Any(_) => None,
        };
        let writes = in_order.map_or(writes, |all| writes.min(u8::try_from(all).unwrap_or(u8::MAX)));
        let said = [
            count(ticks, "tick", "ticks"),
            count(writes, "write", if in_order.is_some() { "writes in order" } else { "writes of any content" }),
            count(unrelated, "other sync", "other syncs"),
            count(restarts, "restart", "restarts"),
            count(failures, "failed sync", "failed syncs"),
            count(relists, "relist", "relists"),
            count(agent_relists, "relist of the agent", "relists of the agent"),
            (self.queue == Queue::DeltaFifo).then(|| "DeltaFIFO".to_owned()),
            (self.writing == Writing::ByService).then(|| "ipvs".to_owned()),
            (self.effect == Effect::Port && self.markers() > 0)
                .then(|| "seen at the health-check node port".to_owned()),
            self.marker_reused.then(|| "the marker used before".to_owned()),
            self.agent_late.then(|| "the agent's watch late".to_owned()),
            self.round_trip.then(|| "answers take time".to_owned()),
            self.service.local.then(|| "Local".to_owned()),
        ];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
