//! The EndpointSlice controller: pods change, and some time later it writes the slices that list them, each for itself.

use std::{rc::Rc, time::Duration};

use lastsyn::core::listener::Family;

use super::{
    api::{Body, Content, Entry, ObjectId},
    chance::{Chance, Stream},
    node::NodeId,
    plan::{Condition, ControllerPlan, Plan},
};

/// The controller, and the pods as they are.
#[derive(Debug)]
pub(super) struct Controller {
    plan: ControllerPlan,
    chance: Chance,
    pods: Vec<(NodeId, Condition)>,
    slices: Vec<Slice>,
}

#[derive(Debug)]
struct Slice {
    service: usize,
    family: Family,
    ports: Rc<[(u8, u16)]>,
    pods: Vec<u16>,
    /// A write is planned.
    behind: bool,
    /// How much later it is written.
    later: Duration,
}

impl Controller {
    pub(super) fn new(plan: &Plan) -> Self {
        let slices = plan.slices.iter().map(|slice| Slice {
            service: slice.service,
            family: slice.family,
            ports: slice.ports.as_slice().into(),
            pods: slice.pods.clone(),
            behind: false,
            later: Duration::ZERO,
        });
        Self {
            plan: plan.controller,
            chance: Chance::of(plan.seed, Stream::Controller),
            pods: plan.pods.clone(),
            slices: slices.collect(),
        }
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.slices.len()).map(ObjectId)
    }

    /// How many pods take connections: by chance the pod that drains gets one of so many.
    pub(super) fn taking(&self) -> usize {
        self.pods.iter().filter(|(_, condition)| *condition == Condition::Ready).count()
    }

    /// A pod changes. Returns which slices will be written, and how much later.
    pub(super) fn pod(&mut self, pod: u16, condition: Condition) -> Vec<(ObjectId, Duration)> {
        self.pods[usize::from(pod)].1 = condition;
        let listing = self.slices().filter(|slice| self.slices[slice.0].pods.contains(&pod)).collect();
        self.behind(listing)
    }

    /// An endpoint moves to another slice, or is listed by it too.
    pub(super) fn relocate(&mut self, pod: u16, from: Option<usize>, to: usize) -> Vec<(ObjectId, Duration)> {
        let mut touched = Vec::new();
        if let Some(from) = from.filter(|from| self.slices.get(*from).is_some_and(|slice| slice.pods.contains(&pod))) {
            self.slices[from].pods.retain(|listed| *listed != pod);
            touched.push(ObjectId(from));
        } else if from.is_some() {
            return Vec::new();
        }
        if let Some(slice) = self.slices.get_mut(to)
            && !slice.pods.contains(&pod)
        {
            slice.pods.push(pod);
            touched.push(ObjectId(to));
        }
        self.behind(touched)
    }

    /// A slice is written later from now on.
    pub(super) fn neglect(&mut self, slice: usize, later: Duration) {
        self.slices[slice].later = later;
    }

    fn behind(&mut self, slices: Vec<ObjectId>) -> Vec<(ObjectId, Duration)> {
        let mut planned = Vec::new();
        for slice in slices {
            if !std::mem::replace(&mut self.slices[slice.0].behind, true) {
                let later = self.slices[slice.0].later + self.chance.waiting(self.plan.lag.0, self.plan.lag.1);
                planned.push((slice, later));
            }
        }
        planned
    }

    /// What a slice is to be now.
    pub(super) fn write(&mut self, slice: ObjectId) -> Content {
        let Slice { service, family, ports, pods, behind, .. } = &mut self.slices[slice.0];
        *behind = false;
        let listed = pods.iter().filter_map(|pod| {
            let (node, condition) = self.pods[usize::from(*pod)];
            entry(*pod, node, condition, self.plan)
        });
        let endpoints: Vec<Entry> = listed.collect();
        if endpoints.is_empty() && self.plan.deletes_empty {
            return Content::Gone;
        }
        Content::Slice(Rc::new(Body { service: *service, family: *family, ports: Rc::clone(ports), endpoints }))
    }
}

fn entry(pod: u16, node: NodeId, condition: Condition, plan: ControllerPlan) -> Option<Entry> {
    let (serving, terminating) = match condition {
        Condition::Ready => (true, false),
        Condition::NotReady => (false, false),
        Condition::Terminating => (true, true),
        Condition::Dying => (false, true),
        Condition::Gone => return None,
    };
    let ready = plan.publishes_not_ready || (serving && !terminating);
    let said = |value: bool, absent: bool| (!plan.terse || value != absent).then_some(value);
    Some(Entry {
        pod,
        node,
        ready: said(ready, true),
        serving: said(serving, true),
        terminating: said(terminating, false),
    })
}
