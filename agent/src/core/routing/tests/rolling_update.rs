//! A rolling update as the EndpointSlice controller writes it: no draining pod may be held up by the others' changes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    time::Duration,
};

use super::{
    super::{Routing, State},
    scene::{Conditions, DEAD, LEAVING, READY, UNREADY, local_service, port, service},
};
use crate::core::{
    clock::Monotonic,
    cluster::{Endpoint, NodeName, ResourceVersion, Service, ServiceName, ServiceProxy, Slice, SliceName},
    listener::Family,
};

/// A Deployment's pods behind one Service, and the controller that writes its slices.
struct Cluster {
    pods_per_node: usize,
    /// Per slice: pods and what they are now.
    slices: Vec<BTreeMap<usize, Conditions>>,
    /// Slices whose object is behind, in the order in which they fell behind.
    behind: VecDeque<usize>,
    slice_size: usize,
    version: u64,
}

impl Cluster {
    fn set(&mut self, pod: usize, conditions: Option<Conditions>) {
        let room = |slice: &BTreeMap<_, _>| slice.len() < self.slice_size;
        let index = self
            .slices
            .iter()
            .position(|slice| slice.contains_key(&pod))
            .or_else(|| self.slices.iter().position(room))
            .unwrap_or(self.slices.len());
        if index == self.slices.len() {
            self.slices.push(BTreeMap::new());
        }
        match conditions {
            Some(conditions) => self.slices[index].insert(pod, conditions),
            None => self.slices[index].remove(&pod),
        };
        if !self.behind.contains(&index) {
            self.behind.push_back(index);
        }
    }

    /// The next slice that is to be written.
    fn write(&mut self) -> Option<Slice> {
        let index = self.behind.pop_front()?;
        Some(self.object(index))
    }

    fn object(&mut self, index: usize) -> Slice {
        self.version += 1;
        let endpoint = |(&pod, &[ready, serving, terminating]): (&usize, &Conditions)| Endpoint {
            address: address(pod),
            addresses: BTreeSet::from([address(pod)]),
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
            node: Some(self.node(pod)),
        };
        Slice {
            name: SliceName(format!("web-{index}")),
            version: ResourceVersion(self.version.to_string()),
            service: ServiceName("web".into()),
            family: Family::V4,
            proxy: ServiceProxy::KubeProxy,
            ports: vec![port("http", 8080)],
            endpoints: self.slices[index].iter().map(endpoint).collect(),
        }
    }

    /// New pods fill the nodes anew, so that each node loses old ones and gets new ones.
    fn node(&self, pod: usize) -> NodeName {
        NodeName(format!("node-{}", pod % 1_000 / self.pods_per_node))
    }
}

fn address(pod: usize) -> IpAddr {
    IpAddr::from([10, 1, u8::try_from(pod / 250).unwrap(), u8::try_from(pod % 250).unwrap()])
}

/// What the drains saw of their own pods.
#[derive(Debug, Default)]
struct Seen {
    drains: usize,
    writes: usize,
    /// Relevant changes after the pod's own withdrawal.
    relevant_after: usize,
    /// Writes that came to a draining pod after its own withdrawal.
    writes_after: usize,
}

/// Pods are old (`0..pods`) or new (`1_000..`). Each 200 ms brings one slice's write. A quarter is surge.
fn roll(pods: usize, slice_size: usize, pods_per_node: usize, service: &Service) -> Seen {
    let (drain_writes, start_writes) = (125, 15); // 25 s of draining, 3 s until a new pod is ready
    let mut cluster = Cluster { pods_per_node, slices: vec![], behind: VecDeque::new(), slice_size, version: 0 };
    (0..pods).for_each(|pod| cluster.set(pod, Some(READY)));
    cluster.behind.clear();
    let mut seen = Seen::default();
    let mut drains: BTreeMap<usize, (Routing, usize, bool)> = BTreeMap::new();
    let (mut started, mut ready, mut told): (Vec<(usize, usize)>, usize, usize) = (vec![], 0, 0);
    for step in 0.. {
        let now = Monotonic::from_nanos(0) + Duration::from_millis(200) * u32::try_from(step).unwrap();
        // The Deployment's controller: at most 5/4 of the pods, and never fewer ready than all.
        if started.len() < pods && started.len() - told < pods / 4 {
            cluster.set(1_000 + started.len(), Some(UNREADY));
            started.push((1_000 + started.len(), step));
        }
        if let Some((pod, since)) = started.get(ready)
            && step >= since + start_writes
        {
            cluster.set(*pod, Some(READY));
            ready += 1;
        }
        if told < ready {
            // The hook of the pod is called: its agent lists, and the controller sees the deletion.
            let mut routing = Routing::new(BTreeSet::from([address(told)]), cluster.node(told));
            routing.services_listed(vec![service.clone()], now);
            let behind = cluster.behind.clone();
            let listed: Vec<_> = (0..cluster.slices.len()).map(|index| cluster.object(index)).collect();
            routing.slices_listed(&listed, now);
            cluster.behind = behind;
            drains.insert(told, (routing, step, false));
            cluster.set(told, Some(LEAVING));
            told += 1;
        }
        for (pod, (_, since, _)) in &drains {
            if step == since + drain_writes / 2 {
                cluster.set(*pod, Some(DEAD));
            } else if step == since + drain_writes {
                cluster.set(*pod, None);
            }
        }
        let Some(slice) = cluster.write() else {
            if told == pods && drains.is_empty() {
                return seen;
            }
            drains.retain(|_, drain| step < drain.1 + drain_writes + 20);
            continue;
        };
        seen.writes += 1;
        for (routing, _, withdrawn) in drains.values_mut() {
            let changes = routing.slice_written(&slice, now);
            let state = routing.routes().next().map(|route| route.state);
            if *withdrawn {
                seen.writes_after += 1;
                seen.relevant_after += usize::from(!changes.relevant.is_empty());
                assert!(matches!(state, Some(State::Withdrawn { .. })), "routed again at {now:?}");
            } else if matches!(state, Some(State::Withdrawn { .. })) {
                *withdrawn = true;
                seen.drains += 1;
            }
        }
        drains.retain(|_, drain| step < drain.1 + drain_writes + 20);
    }
    unreachable!("the update ends")
}

#[test]
fn a_rolling_update_voids_nothing_after_a_pods_own_withdrawal() {
    for (pods, slice_size) in [(100, 40), (200, 100)] {
        let seen = roll(pods, slice_size, 10, &service("web"));
        println!("{pods} pods, slices of {slice_size}: {seen:?}");
        assert_eq!((seen.drains, seen.relevant_after), (pods, 0));
        assert!(seen.writes_after > 50 * pods, "the drains saw next to nothing");
    }
}

#[test]
fn a_rolling_update_under_local_with_ten_pods_a_node_voids_nothing_either() {
    let seen = roll(100, 40, 10, &local_service());
    println!("100 pods, Local: {seen:?}");
    assert_eq!(seen.relevant_after, 0);
    assert!(seen.drains > 0);
}
