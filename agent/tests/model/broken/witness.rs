//! Simpler rules for which writes are relevant. What was confirmed stands through a write that is not.

use super::fails;
use crate::{
    api::{Content, Pod},
    rolling::{by_the_fence, relists},
    service::{Service, Writes},
    setting::Setting,
    witness::Relevance,
};

const NOBODY: Content = Content::EMPTY;
const READY: Content = Content::pod(Pod::Ready);
const SERVING: Content = Content::pod(Pod::Serving);
const DEAD: Content = Content::pod(Pod::Dead);
const NEAR: Content = Content::EMPTY.near(true);

fn by(relevance: Relevance, start: [Content; 3], writes: &'static [(usize, Content)]) -> Setting {
    let service = Service { start, writes: Writes::InOrder(writes), ..Service::TWO_ENDPOINTS };
    let limits = relists(6, 1, 0);
    Setting { relevance, ..by_the_fence(service, limits, limits) }
}

// The other's copy in slice C is not ready: a node may take that one.
fails!(
    a_witness_whose_other_copy_is_not_ready,
    by(Relevance::OtherCopiesIgnored, [READY, NEAR, NOBODY.near(false)], &[(0, SERVING), (2, NOBODY), (0, DEAD)],),
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 API: slice C lists nobody",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// The other got ready after the last relevant change: a node may not have heard of it.
fails!(
    a_witness_that_came_after_the_change,
    by(Relevance::VersionsThenInForceIgnored, [READY, NOBODY.near(false), NOBODY], &[(0, SERVING), (1, NEAR)]),
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 API: slice B lists near ready",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// The other moves: a node may have the old slice's later version, and not the new slice.
fails!(
    a_witness_that_moves_between_slices,
    by(Relevance::SomeSliceEachTime, [READY, NEAR, NOBODY], &[(0, SERVING), (2, NEAR), (1, NOBODY)]),
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 API: slice C lists near ready",
    "0 API: slice B lists nobody",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node no longer routes to the pod",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its watch is lost, and a list with the first 5 writes replaces it",
    "0 kube-proxy: its handlers take the marker of the list",
    "0 kube-proxy: its handlers take slice B of the list",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node routes to the pod again",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// The pod serves as the last one, and then no more: a node may not have heard of that.
fails!(
    no_witness_where_the_pod_does_not_serve_now,
    by(Relevance::NotServingNow, [READY, NOBODY.near(false), NOBODY], &[(0, SERVING), (0, DEAD)]),
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 API: slice A lists the pod not serving",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// The pod serves again when another is ready: a node may have heard of the pod alone.
fails!(
    only_un_withdrawals,
    by(Relevance::OnlyUnWithdrawals, [READY, NOBODY.near(false), NOBODY], &[(0, DEAD), (1, NEAR), (0, SERVING)]),
    "0 API: slice A lists the pod not serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 API: slice B lists near ready",
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node no longer routes to the pod",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its watch is lost, and a list with the first 5 writes replaces it",
    "0 kube-proxy: its handlers take the marker of the list",
    "0 kube-proxy: its handlers take slice A of the list",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node routes to the pod again",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// Under `Local` the pod's node asks its own endpoints alone.
fails!(
    a_witness_on_another_node_under_local,
    {
        let writes = &[(0, SERVING), (0, DEAD)];
        let setting = by(Relevance::WitnessOnAnotherNode, [READY, NOBODY.far(true), NOBODY], writes);
        Setting { service: Service { local: true, ..setting.service }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 API: slice A lists the pod not serving",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);

// New pods lack the second port: for that one the pod is the fallback.
fails!(
    a_witness_of_another_port,
    {
        let setting = by(Relevance::WitnessOfAnotherPort, [READY, NEAR, NOBODY], &[(0, SERVING), (0, DEAD)]);
        Setting { service: Service { second_port: [true, false, false], ..setting.service }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 API: slice A lists the pod not serving",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain; the node still routes to the pod",
);
