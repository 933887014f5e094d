//! What one event costs the decision, and how much memory a drain in a large cluster takes.
//!
//! `cargo bench -p lastsyn --bench decision` measures the time; the memory is counted exactly, by the allocator, and
//! printed first. Nothing here is a stand-in: it is the core that the agent runs.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::print_stdout, reason = "its results are its output")]

mod cluster;

use std::{hint::black_box, time::Duration};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group};
use lastsyn::core::{
    clock::Monotonic,
    cluster::ClusterEvent,
    drain::Core,
    event::{Action, Event},
};

use cluster::{Cluster, START};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A drain that waits for its nodes, in a cluster of this size.
fn draining(cluster: &mut Cluster) -> Core {
    let mut core = Cluster::core();
    cluster.call_hook(&mut core);
    cluster.list(&mut core);
    cluster.withdraw(&mut core);
    core
}

fn handle(core: &mut Core, event: Event, now: Monotonic) {
    core.handle(event, now);
    while let Some(action) = core.poll() {
        drop::<Action>(black_box(action));
    }
}

/// How many events one measurement has: in a drain they come one after the other.
const BATCH: usize = 1000;

/// Events of each kind that comes often, with 1, 50, 500 and 5,000 nodes: nothing may grow with the nodes but the touched
/// one's part. What a slice costs grows with its endpoints, of which it has 100 here.
fn events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event");
    group.throughput(Throughput::Elements(BATCH as u64));
    for nodes in [1, 50, 500, 5000] {
        let mut cluster = Cluster::new(nodes, 10);
        let core = draining(&mut cluster);
        let now = START + Duration::from_secs(3);
        let answers = (0..BATCH).map(|number| Cluster::health(number % nodes, number as i128, now)).collect();
        let unrelated = (0..BATCH).map(|_| cluster.unrelated_slice()).collect();
        let relevant = (0..BATCH).map(|number| cluster.slice_that_routes(number % 2 == 0)).collect();
        let kinds: [(&str, Vec<ClusterEvent>); 3] =
            [("health answer", answers), ("unrelated slice", unrelated), ("relevant slice", relevant)];
        for (name, events) in kinds {
            let events: Vec<_> = events.into_iter().map(|event| cluster.say(event)).collect();
            group.bench_function(BenchmarkId::new(name, nodes), |bencher| {
                bencher.iter_batched(
                    || (core.clone(), events.clone()),
                    |(mut core, events)| {
                        for event in events {
                            handle(&mut core, event, now);
                        }
                        core
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

/// The core's memory at the end of a whole drain.
fn print_memory() {
    for (nodes, services) in [(50, 10), (500, 10), (5000, 10)] {
        let mut cluster = Cluster::new(nodes, services);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let mut core = draining(&mut cluster);
        let events = cluster.poll_every_node_until_the_end(&mut core);
        let peak = MEMORY.peak_usage() - before;
        println!("{nodes:>6} nodes {services:>9} services {peak:>12} bytes at most {events:>12} events");
        assert!(core.verdict().is_some(), "the drain has ended by evidence");
    }
}

criterion_group!(
    name = benches;
    config = Criterion::default().sample_size(50).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = events
);

fn main() {
    print_memory();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
