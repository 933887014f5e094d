//! A rolling update: the core's routing and its confirmations together, over several slices. A write that the witness
//! rule calls not relevant leaves the confirmations standing, and no order in which the node comes to know of it may
//! make it route to the pod again.

use lastsyn::core::confirm::By;

use crate::{
    api::{Content, Pod},
    service::{Service, Writes},
    setting::{Limits, Queue, Setting},
    sound::{fence, holds, settled, syncs, waited},
};

const NOBODY: Content = Content::EMPTY;
const READY: Content = Content::pod(Pod::Ready);
const SERVING: Content = Content::pod(Pod::Serving);
const DEAD: Content = Content::pod(Pod::Dead);
const NEAR: Content = Content::EMPTY.near(true);
const FAR: Content = Content::EMPTY.far(true);

/// A new pod comes into another slice and gets ready; the pod leaves; an old one beside it leaves too.
const UPDATE: Service = Service {
    start: [READY.near(true), NOBODY.far(false), NOBODY],
    writes: Writes::InOrder(&[(1, FAR), (0, SERVING.near(true)), (0, SERVING.near(false)), (0, NOBODY)]),
    ..Service::TWO_ENDPOINTS
};

/// The only other endpoint moves to a new slice, which is written before the old one goes.
const ENDPOINT_MOVES: Service = Service {
    start: [READY, NEAR, NOBODY],
    writes: Writes::InOrder(&[(0, SERVING), (2, NEAR), (1, NOBODY), (0, NOBODY)]),
    ..Service::TWO_ENDPOINTS
};

/// The same with the old one written first: in between, nobody else is ready.
const ENDPOINT_MOVES_WITH_A_GAP: Service =
    Service { writes: Writes::InOrder(&[(0, SERVING), (1, NOBODY), (2, NEAR), (0, NOBODY)]), ..ENDPOINT_MOVES };

/// The pod's own entry moves, while it serves, beside an endpoint that moves and one that stays.
const POD_MOVES: Service = Service {
    start: [READY.near(true), FAR, NOBODY],
    writes: Writes::InOrder(&[(0, SERVING.near(true)), (2, SERVING.near(true)), (0, NOBODY), (2, NEAR)]),
    ..Service::TWO_ENDPOINTS
};

/// New pods lack the second port: for it the pod is the fallback although a new pod is ready.
const PORT_MISSING: Service = Service {
    start: [READY.near(true), FAR, NOBODY],
    writes: Writes::InOrder(&[(0, SERVING.near(true)), (0, SERVING.near(false)), (0, DEAD), (0, NOBODY)]),
    second_port: [true, false, false],
    ..Service::TWO_ENDPOINTS
};

/// Under `Local` the endpoint on the other node is no witness.
const UNDER_LOCAL: Service = Service {
    start: [READY, FAR, NEAR],
    writes: Writes::InOrder(&[(0, SERVING), (1, NOBODY), (2, NOBODY.near(false)), (0, DEAD)]),
    local: true,
    ..Service::TWO_ENDPOINTS
};

/// Two slices, and whatever a controller could write to them.
const ANYTHING: Service = Service {
    start: [READY, NEAR, NOBODY],
    writes: Writes::Any(&[
        (0, READY),
        (0, SERVING),
        (0, SERVING.near(true)),
        (0, SERVING.near(false)),
        (0, NEAR),
        (0, NOBODY),
        (1, SERVING),
        (1, NEAR),
        (1, NOBODY.near(false)),
        (1, NOBODY),
    ]),
    ..Service::TWO_ENDPOINTS
};

/// C4 where nothing restarts: then it need not wait for the lag, and nothing depends on time.
pub(crate) fn by_the_fence(service: Service, bounded: Limits, larger: Limits) -> Setting {
    Setting { service, lag_unknown: true, ..fence(2, bounded, larger) }
}

/// So many writes of any order, and relists: kube-proxy's and the agent's.
pub(crate) const fn relists(writes: u8, relists: u8, agent_relists: u8) -> Limits {
    Limits { ticks: 0, writes, unrelated: 0, restarts: 0, failures: 0, relists, agent_relists }
}

/// The agent's own watch may be late, and may be lost.
fn agent_late(service: Service) -> Setting {
    Setting { agent_late: true, ..by_the_fence(service, relists(3, 0, 0), relists(6, 0, 1)) }
}

fn relisted(service: Service) -> Setting {
    by_the_fence(service, relists(3, 1, 0), relists(6, 1, 0))
}

/// C5, and what goes wrong.
fn by_syncs(service: Service) -> Setting {
    let limits = |writes, restarts, relists| Limits {
        ticks: 3,
        writes,
        unrelated: 1,
        restarts,
        failures: 0,
        relists,
        agent_relists: 0,
    };
    Setting { service, ..syncs(limits(4, 0, 0), limits(6, 1, 1)) }
}

/// C6 and C7.
fn by_waiting(service: Service, setting: fn(Limits, Limits) -> Setting) -> Setting {
    let limits = |ticks, writes, unrelated, relists| Limits { ticks, unrelated, ..self::relists(writes, relists, 0) };
    Setting { service, ..setting(limits(5, 2, 1, 0), limits(5, 6, 1, 1)) }
}

holds!(witness_in_a_rolling_update, relisted(UPDATE));
holds!(witness_while_an_endpoint_moves, relisted(ENDPOINT_MOVES));
holds!(witness_while_an_endpoint_moves_with_a_gap, relisted(ENDPOINT_MOVES_WITH_A_GAP));
holds!(witness_while_the_pods_entry_moves, relisted(POD_MOVES));
holds!(witness_where_new_pods_lack_a_port, relisted(PORT_MISSING));
holds!(witness_under_local, relisted(UNDER_LOCAL));
holds!(witness_whatever_is_written, by_the_fence(ANYTHING, relists(2, 1, 0), relists(3, 1, 0)));

holds!(witness_in_a_rolling_update_when_the_agent_is_late, agent_late(UPDATE));
holds!(witness_while_an_endpoint_moves_when_the_agent_is_late, agent_late(ENDPOINT_MOVES));
holds!(witness_while_an_endpoint_moves_with_a_gap_when_the_agent_is_late, agent_late(ENDPOINT_MOVES_WITH_A_GAP));
holds!(witness_while_the_pods_entry_moves_when_the_agent_is_late, agent_late(POD_MOVES));
holds!(witness_where_new_pods_lack_a_port_when_the_agent_is_late, agent_late(PORT_MISSING));

holds!(witness_under_local_when_the_agent_is_late, agent_late(UNDER_LOCAL));

holds!(witness_with_more_relists, by_the_fence(ENDPOINT_MOVES, relists(3, 1, 0), relists(6, 2, 0)));
holds!(witness_with_a_relist_of_the_agent, {
    Setting { agent_late: true, ..by_the_fence(POD_MOVES, relists(3, 0, 1), relists(6, 1, 1)) }
});
holds!(witness_with_delta_fifo, {
    let setting = by_the_fence(ENDPOINT_MOVES, relists(3, 0, 0), relists(6, 1, 0));
    Setting { queue: Queue::DeltaFifo, marker_reused: true, ..setting }
});
holds!(witness_with_a_restart, {
    let limits = |writes, failures| Limits { ticks: 2, restarts: 1, failures, ..relists(writes, 0, 0) };
    Setting { service: POD_MOVES, ..fence(2, limits(2, 0), limits(6, 1)) }
});
holds!(witness_by_syncs, by_syncs(UPDATE));
holds!(witness_by_syncs_while_an_endpoint_moves, by_syncs(ENDPOINT_MOVES));
holds!(witness_by_syncs_where_new_pods_lack_a_port, by_syncs(PORT_MISSING));
holds!(witness_by_settled, by_waiting(POD_MOVES, |bounded, larger| settled(By::SettledByWait, bounded, larger)));
holds!(
    witness_by_settled_by_a_late_edge,
    by_waiting(PORT_MISSING, |bounded, larger| settled(By::SettledByEdge, bounded, larger))
);
holds!(witness_by_waiting, by_waiting(UPDATE, waited));
