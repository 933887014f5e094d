//! The race of `envoyproxy/gateway#9210`: a real Envoy that is its node's last pod behind a Service with the policy `Local`, and a
//! load balancer that goes on sending to that node for 8 to 11 s. Readiness that fails with the deletion, as Envoy Gateway's
//! shutdown manager has it, takes the pod out of kube-proxy's fallback while it is still sent to; `readiness.failAfter: auto`
//! keeps it there. Both at once, on one kubelet. `cargo xtask prove last-on-node` shows it with full numbers.

use lastsyn_tests::{
    kubernetes::Mode,
    prove::last_on_node::{Plan, Round},
};

#[test]
fn the_published_shutdown_loses_what_a_load_balancer_still_sends_and_the_agent_loses_nothing() {
    let round = Plan { mode: Mode::Nftables, per_second: 25 }.run().unwrap();
    round.check().unwrap();
    let Round { published, agent } = &round;
    let (lost, log) = (agent.summary().lost(), &agent.log);
    assert_eq!(lost, 0, "{}\n{log}", agent.summary());
    // What tells the two apart: readiness held for as long as the load balancer sent, and longer.
    assert!(agent.not_serving.is_none_or(|failed| failed > agent.sent_on), "{:?}\n{log}", agent.not_serving);
    assert!(log.contains("was told: announce") && !log.contains("was told: fail-readiness"), "{log}");
    eprintln!("published: {}\nagent: {}", published.after_the_deletion(), agent.after_the_deletion());
}
