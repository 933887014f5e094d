//! Which writes are relevant: by the core, or by a simpler rule. Each of the simpler ones leaves out one part of the
//! rule in force: a witness is one other address of the same Service port (on the pod's node, where a policy is `Local`)
//! that one slice lists ready in every version since the last relevant change, the one then in force included, and that
//! no slice lists not ready in any; and it is needed as soon as any of these versions lists the pod serving.

use crate::{
    api::{Content, Log, Pod, Value},
    service::Service,
};

/// Which writes are relevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relevance {
    /// Those of the core.
    Core,
    /// V3: one slice lists the witness ready throughout, whatever others say of it.
    OtherCopiesIgnored,
    /// V4: the versions in force at the last relevant change do not count.
    VersionsThenInForceIgnored,
    /// V5: the witness is ready in *some* slice each time.
    SomeSliceEachTime,
    /// V6: no witness is needed where no slice lists the pod serving *now*.
    NotServingNow,
    /// V8: only what routes to the pod again.
    OnlyUnWithdrawals,
    /// V9: under `Local`, a witness on another node.
    WitnessOnAnotherNode,
    /// A witness of another port of the Service.
    WitnessOfAnotherPort,
}

/// What the agent's watch has delivered since the last relevant change.
pub(crate) struct History<'a> {
    pub(crate) service: &'a Service,
    pub(crate) log: &'a Log,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

type Ready = fn(&Content) -> Option<bool>;

impl Relevance {
    /// Whether the last of these writes is relevant. `withdrawn` is what the core says after it.
    pub(crate) fn asks(self, by_the_core: bool, withdrawn: bool, history: &History<'_>) -> bool {
        match self {
            Self::Core => by_the_core,
            Self::OnlyUnWithdrawals => !withdrawn || history.was_routed(),
            _ => self.can_route(history),
        }
    }

    fn can_route(self, history: &History<'_>) -> bool {
        let in_force_then = usize::from(self == Self::VersionsThenInForceIgnored);
        let versions = history.versions();
        let counting: Vec<Vec<Content>> =
            versions.iter().map(|of_slice| of_slice.iter().copied().skip(in_force_then).collect()).collect();
        let now = |of_slice: &Vec<Content>| of_slice.last().copied();
        let serves = if self == Self::NotServingNow {
            versions.iter().filter_map(now).any(|content| content.pod == Some(Pod::Serving))
        } else {
            counting.iter().flatten().any(|content| content.pod.is_some_and(|pod| pod != Pod::Dead))
        };
        let ready = counting.iter().flatten().any(|content| content.pod == Some(Pod::Ready));
        let ports = [true, history.service.second_port.contains(&true)];
        let every_port_has_one =
            [false, true].into_iter().zip(ports).filter(|(_, exists)| *exists).all(|(second, _)| {
                let of_port = |slice: &usize| !second || history.service.second_port[*slice];
                let slices: Vec<usize> = (0..3).filter(of_port).collect();
                self.has_witness(history, &counting, &slices)
            });
        let witnessed = match self {
            Self::WitnessOfAnotherPort => self.has_witness(history, &counting, &[0, 1, 2]),
            _ => every_port_has_one,
        };
        ready || (serves && !witnessed)
    }

    fn has_witness(self, history: &History<'_>, counting: &[Vec<Content>], slices: &[usize]) -> bool {
        let near: Ready = |content| content.near;
        let far: Ready = |content| content.far;
        let near_alone = history.service.local && self != Self::WitnessOnAnotherNode;
        let witnesses: &[Ready] = if near_alone { &[near] } else { &[near, far] };
        witnesses.iter().any(|who| {
            let is_ready = |content: &Content| who(content) == Some(true);
            let of_slices = || slices.iter().map(|slice| &counting[*slice]);
            let one_slice = of_slices().any(|versions| !versions.is_empty() && versions.iter().all(is_ready));
            let contradicted = of_slices().flatten().any(|content| who(content) == Some(false));
            let each_time = history.moments().all(|moment| slices.iter().any(|slice| is_ready(&moment[*slice])));
            match self {
                Self::OtherCopiesIgnored => one_slice,
                Self::SomeSliceEachTime => each_time && !contradicted,
                _ => one_slice && !contradicted,
            }
        })
    }
}

impl History<'_> {
    /// Of each slice the version in force at the last relevant change, and all since.
    fn versions(&self) -> Vec<Vec<Content>> {
        let mut versions: Vec<_> =
            self.service.at(self.log, self.from).slices.iter().map(|content| vec![*content]).collect();
        for write in self.log.0.iter().take(self.to).skip(self.from) {
            if let Value::Slice(slice, content) = write.value {
                versions[slice].push(content);
            }
        }
        versions
    }

    /// What all slices said after the last relevant change, and after each write since.
    fn moments(&self) -> impl Iterator<Item = [Content; 3]> {
        (self.from..=self.to).map(|version| self.service.at(self.log, version).slices)
    }

    /// Whether the pod was routed before the last write.
    fn was_routed(&self) -> bool {
        self.service.routes(&self.service.at(self.log, self.to - 1))
    }
}
