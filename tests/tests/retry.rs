//! E2a: a client whose SYN was dropped on a full backlog comes back to this pod, whatever the forwarding says by then, and
//! finds it serving.

use std::{thread, time::Duration};

use anyhow::{Result, anyhow};
use lastsyn_tests::{
    Agent, AgentConfig, Attempt, Connection, Outcome, Pod, Server, ServerConfig, World, await_condition, connect_once,
    counters::Counters, monotonic_now,
};

const SOON: Duration = Duration::from_secs(10);
/// The default of `drain.retryWait`.
const RETRY_WAIT: Duration = Duration::from_secs(8);
/// When a client's SYNs go out, counted from the first: 1, 2 and 4 s apart.
const TRIES: [Duration; 4] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(7)];
/// A kernel's timer may be this much early, as it counts in ticks.
const TICKS: Duration = Duration::from_millis(20);

/// What became of a client over each family whose first SYNs met a full backlog.
struct Scene {
    clients: Vec<Attempt>,
    /// When the hook's process had ended, and the server closed its listener.
    hook_ended_at: u64,
}

/// The backlog is full for the first `dropped` of each client's SYNs. After the first of them the hook is called and the
/// forwarding moves.
fn scene(dropped: u64, retry_wait: &str) -> Result<Scene> {
    let world = World::new()?;
    // Newer kernels try four times with a second between each before they double it. The older way asks for more.
    world.client.set_sysctl("net.ipv4.tcp_syn_linear_timeouts", "0")?;
    let named = |name: &str| ServerConfig { name: name.to_owned(), ..ServerConfig::default() };
    let server = Server::start(&world.pod_a, ServerConfig { backlog: 1, accept: false, ..named("a") })?;
    let _successor = Server::start(&world.pod_b, named("b"))?;
    let config =
        AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "500ms").env("LASTSYN_DRAIN_RETRY_WAIT", retry_wait);
    let agent = Agent::start(&world.pod_a, config)?;
    let [v4, v6] = <[_; 2]>::try_from(world.targets(80)).map_err(|targets| anyhow!("two targets: {targets:?}"))?;
    // The kernel lets one more in than the backlog says.
    let _waiting = [v4, v6].map(|target| Connection::open(&world.client, target, SOON));
    let drops = || Counters::of(&world.pod_a).map(|counters| counters.tcp_ext("ListenDrops"));
    let before = drops()?;

    thread::scope(|scope| {
        let try_once = |target| connect_once(&world.client, target, Duration::from_secs(15));
        let clients = [v4, v6].map(|target| scope.spawn(move || try_once(target)));
        let all_dropped =
            |times: u64| await_condition("dropped SYNs", SOON, || drops().is_ok_and(|now| now >= before + 2 * times));
        all_dropped(1)?;
        let hook = agent.hook(["--json"])?;
        world.route_to(Pod::B)?;
        for target in [v4, v6] {
            assert_eq!(try_once(target).outcome, served_by("b"));
        }
        all_dropped(dropped)?;
        server.accept()?;
        hook.wait_for_success(3 * SOON)?;
        let hook_ended_at = monotonic_now();
        server.close()?;
        let clients = clients.into_iter().map(|client| client.join().map_err(|_panic| anyhow!("a client panicked")));
        Ok(Scene { clients: clients.collect::<Result<_>>()?, hook_ended_at })
    })
}

/// One scene for each number of SYNs that are dropped, all at the same time.
fn scenes<const COUNT: usize>(dropped: [u64; COUNT], retry_wait: &str) -> Result<Vec<Scene>> {
    thread::scope(|scope| {
        let running = dropped.map(|dropped| scope.spawn(move || scene(dropped, retry_wait)));
        running
            .into_iter()
            .map(|scene| scene.join().unwrap_or_else(|_panic| Err(anyhow!("a scene panicked"))))
            .collect()
    })
}

#[test]
fn a_client_that_comes_back_1_or_2_or_4_seconds_later_is_served() {
    for (dropped, scene) in (1..).zip(scenes([1, 2, 3], "8s").unwrap()) {
        for client in scene.clients {
            assert_eq!(client.outcome, served_by("a"), "{dropped} dropped: {client:?}");
            assert!(client.took + TICKS >= TRIES[dropped], "it was served at once: {client:?}");
            let held = Duration::from_nanos(scene.hook_ended_at - client.tried_at);
            assert!(held + TICKS >= TRIES[dropped - 1] + RETRY_WAIT, "{dropped} dropped: {held:?}");
        }
    }
}

#[test]
fn without_the_wait_it_is_lost() {
    for client in scenes([2, 3], "0s").unwrap().into_iter().flat_map(|scene| scene.clients) {
        assert_eq!(client.outcome, Outcome::Refused, "{client:?}");
    }
}

fn served_by(name: &str) -> Outcome {
    Outcome::Served { by: name.to_owned() }
}
