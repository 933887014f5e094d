//! The race that a delayed readiness failure is for: under a `Local` policy the node serves a load balancer only while its
//! pod is ready, and the load balancer goes on sending for seconds after the pod was deleted. Told the published way
//! (`POST /healthcheck/fail` first of all) Envoy loses what comes meanwhile; with the agent it loses nothing.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Mutex,
    thread,
    time::Duration,
};

use lastsyn_tests::{
    Agent, AgentConfig, Envoy, Families, PacedClient, Pod, Summary, World, WorldConfig, await_condition, envoy, http,
    monotonic_now, prove::wait_until,
};

const SOON: Duration = Duration::from_secs(10);
const WITHIN: Duration = Duration::from_secs(30);
/// From the deletion until the load balancer sends elsewhere.
const MOVE_AFTER: Duration = Duration::from_millis(2500);
/// Between two probes of a kubelet; one failure is enough, as in Envoy Gateway's pods.
const PROBE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    /// Envoy Gateway's with `healthCheckFailureDelay: 0s`, and Contour's.
    Published,
    /// The agent's, as it is by default.
    Agent,
}

#[test]
fn readiness_that_fails_at_once_loses_what_a_load_balancer_still_sends_and_the_agent_loses_nothing() {
    let [published, agent] = thread::scope(|scope| {
        [Shutdown::Published, Shutdown::Agent]
            .map(|shutdown| scope.spawn(move || delete(shutdown)))
            .map(|running| running.join().unwrap())
    });
    assert!(agent.tried >= 400 && published.tried >= 400, "published: {published}; agent: {agent}");
    assert_eq!(agent.lost(), 0, "{agent}");
    assert!(published.lost() >= 50, "the race shows nothing: {published}");
    eprintln!("published: {published}\nagent: {agent}");
}

fn delete(shutdown: Shutdown) -> Summary {
    // As behind a load balancer: over IPv4.
    let world = World::with(WorldConfig { families: Families::V4, ..WorldConfig::default() }).unwrap();
    let server = Envoy::start(&world.pod_a, "a", 80).unwrap();
    let _successor = Envoy::start(&world.pod_b, "b", 80).unwrap();
    let config = AgentConfig::default().env("LASTSYN_PROXY_KIND", "envoy");
    let agent = Agent::start(&world.pod_a, config).unwrap();
    let client = PacedClient::start(&world.client, world.targets(80), 100).unwrap();
    await_condition("the first answers", SOON, || client.so_far().served_by("a") >= 20).unwrap();

    // Whether the load balancer sends elsewhere. Whoever changes the forwarding holds it.
    let moved_on = Mutex::new(false);
    let deleted_at = monotonic_now();
    thread::scope(|scope| {
        let moved = scope.spawn(|| {
            wait_until(deleted_at, MOVE_AFTER).unwrap();
            let mut moved_on = moved_on.lock().unwrap();
            world.route_to(Pod::B).unwrap();
            *moved_on = true;
        });
        // kubelet probes, and kube-proxy takes the node's last local endpoint away once it is not ready.
        scope.spawn(|| {
            let health = SocketAddr::from((Pod::A.v4(), envoy::READINESS));
            let mut probed_at = deleted_at;
            while !*moved_on.lock().unwrap() {
                wait_until(probed_at, PROBE).unwrap();
                probed_at = monotonic_now();
                let ready = http::get(&world.node, health, "/ready", SOON).is_ok_and(|answer| answer.status == 200);
                let moved_on = moved_on.lock().unwrap();
                if !ready && !*moved_on {
                    world.node.nft("flush chain inet service forwarding\n").unwrap();
                }
            }
        });
        match shutdown {
            Shutdown::Published => {
                let admin = (Ipv4Addr::LOCALHOST, envoy::ADMIN).into();
                let answer =
                    http::request(&world.pod_a, &http::Method::POST, admin, "/healthcheck/fail", "", SOON).unwrap();
                assert_eq!(answer.status, 200);
                moved.join().unwrap();
            }
            Shutdown::Agent => {
                agent.hook(["--mark", "--strict"]).unwrap().wait_for_success(SOON).unwrap();
                agent.hook(["--json"]).unwrap().wait_for_success(WITHIN).unwrap();
                moved.join().unwrap();
            }
        }
    });
    let before = client.so_far().served_by("b");
    await_condition("answers of the other pod", SOON, || client.so_far().served_by("b") > before + 20).unwrap();
    server.stop().unwrap();
    Summary::of(&client.stop().unwrap())
}
