//! The rounds against a world that keeps everything it did: no node is called confirmed unless its process had, by then, a
//! snapshot from after the call.

use proptest::prelude::*;

use super::*;

const PACE: Pace = Pace { spacing: Duration::from_secs(1), gather: Duration::from_millis(150) };
const STAND: Duration = Duration::from_secs(2);

fn at(millis: u64) -> Monotonic {
    Monotonic::from_nanos(millis * 1_000_000)
}

fn node(name: &str) -> NodeName {
    NodeName(name.to_owned())
}

fn listed(names: &[&str]) -> Vec<Node> {
    names.iter().map(|name| Node { name: node(name), system: OperatingSystem::Linux }).collect()
}

/// Two nodes whose first values are written, with a connection each that shows them.
fn ready(names: &[&str]) -> Rounds {
    let mut rounds = Rounds::new(PACE);
    rounds.nodes(&listed(names), at(0));
    let values = names.iter().map(|name| (node(name), Generation::FIRST)).collect();
    rounds.loaded(Family::V4, &values, at(0));
    for name in names {
        rounds.opened(&node(name), Family::V4, ConnectionId(1));
        rounds.answered(&node(name), Family::V4, ConnectionId(1), at(0), 1, at(0));
    }
    rounds
}

fn ask(rounds: &mut Rounds, call: u64, now: u64) -> CallId {
    rounds.ask(CallId(call), &[Family::V4], STAND, at(now));
    CallId(call)
}

fn shows(rounds: &mut Rounds, name: &str, endpoints: u64, now: u64) {
    rounds.answered(&node(name), Family::V4, ConnectionId(1), at(now), endpoints, at(now));
}

fn write(rounds: &mut Rounds, now: u64) -> Write {
    let write = rounds.begin_write(Family::V4, at(now)).expect("a write is due");
    rounds.written(Family::V4, write.id, at(now));
    write
}

fn asked(rounds: &Rounds, name: &str, now: u64) -> bool {
    rounds.wants(Family::V4).is_some_and(|wants| rounds.answer_wanted(&node(name), Family::V4, wants, at(now)))
}

fn confirmed(rounds: &Rounds, call: CallId) -> Vec<String> {
    let states = rounds.states(call).filter(|(_, _, state)| matches!(state, State::Confirmed { .. }));
    states.map(|(name, _, _)| name.to_string()).collect()
}

#[test]
fn c4_two_markers_from_after_the_call_confirm_a_node_that_lives_on() {
    let mut rounds = ready(&["a"]);
    assert_eq!(rounds.write_due(Family::V4, at(10)), None, "nobody asks");
    let call = ask(&mut rounds, 1, 10);
    assert_eq!(write(&mut rounds, 10).values[&node("a")].endpoints(), 2);
    shows(&mut rounds, "a", 2, 1060);
    assert!(confirmed(&rounds, call).is_empty());
    write(&mut rounds, 1060);
    shows(&mut rounds, "a", 3, 2009);
    assert!(confirmed(&rounds, call).is_empty(), "C11: it has not lived long enough");
    shows(&mut rounds, "a", 3, 2010);
    assert_eq!(confirmed(&rounds, call), ["a"]);
    assert_eq!(rounds.write_due(Family::V4, at(3000)), None, "nothing more is wanted");
    assert!(!asked(&rounds, "a", 3000));
}

#[test]
fn a_node_is_asked_only_while_it_may_have_something_new_to_say() {
    let mut rounds = ready(&["a"]);
    assert_eq!(rounds.wants(Family::V4), None);
    ask(&mut rounds, 1, 10);
    assert!(!asked(&rounds, "a", 10), "it shows what is written");
    write(&mut rounds, 10);
    assert!(asked(&rounds, "a", 11));
    shows(&mut rounds, "a", 2, 500);
    assert!(!asked(&rounds, "a", 501), "it waits for the second marker");
    write(&mut rounds, 1010);
    assert!(asked(&rounds, "a", 1011));
    shows(&mut rounds, "a", 3, 1500);
    assert!(!asked(&rounds, "a", 1501), "its process is to live on until 2010");
    assert!(asked(&rounds, "a", 2010));
    rounds.closed(&node("a"), Family::V4, ConnectionId(1));
    assert!(asked(&rounds, "a", 1502), "a new process has shown nothing");
}

#[test]
fn a_write_waits_for_whoever_comes_one_after_the_other_and_not_for_long() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let mut rounds = ready(&names[..1]);
    rounds.nodes(&listed(&names), at(0));
    // Their first values, which are no markers.
    write(&mut rounds, 0);
    ask(&mut rounds, 1, 0);
    for (number, name) in (1_u64..).zip(&names[1..]) {
        let now = number * 100;
        assert_eq!(rounds.begin_write(Family::V4, at(now)), None, "{name} is not there");
        rounds.opened(&node(name), Family::V4, ConnectionId(1));
        shows(&mut rounds, name, 1, now);
        let due = rounds.write_due(Family::V4, at(now)).expect("some are ready");
        assert_eq!(due, at((now + 150).min(1100)), "{name}");
        if number == 10 {
            break;
        }
    }
    assert_eq!(rounds.begin_write(Family::V4, at(1099)), None);
    let write = rounds.begin_write(Family::V4, at(1100)).expect("it has waited for a spacing");
    assert_eq!(write.values.len(), 11, "l is not there yet");
}

#[test]
fn c4_a_call_has_no_part_in_a_write_that_began_before_it() {
    let mut rounds = ready(&["a"]);
    let first = ask(&mut rounds, 1, 0);
    let write_one = rounds.begin_write(Family::V4, at(0)).expect("due");
    let late = ask(&mut rounds, 2, 1);
    rounds.written(Family::V4, write_one.id, at(2));
    shows(&mut rounds, "a", 2, 1100);
    write(&mut rounds, 1100);
    shows(&mut rounds, "a", 3, 2500);
    assert_eq!(confirmed(&rounds, first), ["a"]);
    assert!(confirmed(&rounds, late).is_empty());
    write(&mut rounds, 2500);
    shows(&mut rounds, "a", 4, 3600);
    assert_eq!(confirmed(&rounds, late), ["a"], "it shares the second write, and the third is its own second");
}

#[test]
fn c1_a_broken_connection_starts_its_node_again_and_no_other() {
    let mut rounds = ready(&["a", "b"]);
    let call = ask(&mut rounds, 1, 0);
    write(&mut rounds, 0);
    for name in ["a", "b"] {
        shows(&mut rounds, name, 2, 1000);
    }
    write(&mut rounds, 1000);
    rounds.closed(&node("a"), Family::V4, ConnectionId(1));
    rounds.opened(&node("a"), Family::V4, ConnectionId(2));
    shows(&mut rounds, "b", 3, 2100);
    rounds.answered(&node("a"), Family::V4, ConnectionId(2), at(2100), 3, at(2100));
    assert_eq!(confirmed(&rounds, call), ["b"]);
    shows(&mut rounds, "a", 3, 2200);
    assert_eq!(confirmed(&rounds, call), ["b"], "what comes late over the old connection is nothing");
    for (number, (endpoints, now)) in [(4, 3300), (5, 4400)].into_iter().enumerate() {
        let write = write(&mut rounds, 2200 + 1100 * number as u64);
        assert_eq!(write.values.len(), 1, "b has no need of it");
        rounds.answered(&node("a"), Family::V4, ConnectionId(2), at(now), endpoints, at(now));
    }
    assert_eq!(confirmed(&rounds, call), ["a", "b"]);
}

#[test]
fn another_writer_s_marker_is_not_taken_for_ours() {
    let mut rounds = ready(&["a"]);
    let call = ask(&mut rounds, 1, 0);
    let write_one = rounds.begin_write(Family::V4, at(0)).expect("due");
    // Another writer's, which came first, looks the same.
    shows(&mut rounds, "a", 2, 100);
    rounds.write_lost(Family::V4, write_one.id);
    assert!(rounds.load_wanted(Family::V4));
    assert_eq!(rounds.write_due(Family::V4, at(200)), None);
    rounds.loaded(Family::V4, &BTreeMap::from([(node("a"), Generation::FIRST.next())]), at(200));
    shows(&mut rounds, "a", 2, 200);
    assert_eq!(rounds.write_due(Family::V4, at(200)), Some(at(1200)), "it keeps its distance from the other's");
    write(&mut rounds, 1200);
    shows(&mut rounds, "a", 3, 2300);
    assert!(confirmed(&rounds, call).is_empty(), "one marker of ours");
    write(&mut rounds, 2300);
    shows(&mut rounds, "a", 4, 3400);
    assert_eq!(confirmed(&rounds, call), ["a"]);
}

#[test]
fn c12_a_silent_node_is_awaited_where_others_answer() {
    let mut rounds = Rounds::new(PACE);
    rounds.nodes(&listed(&["a", "b"]), at(0));
    let call = ask(&mut rounds, 1, 0);
    let state = |rounds: &Rounds, name: &str| {
        rounds.states(call).find(|(node, _, _)| node.0 == name).map(|(_, _, state)| state).expect("a state")
    };
    for name in ["a", "b"] {
        rounds.reach(&node(name), Family::V4, Reach::Silent("refused".to_owned()));
        assert_eq!(state(&rounds, name), State::Unobservable("refused".into()));
    }
    rounds.opened(&node("a"), Family::V4, ConnectionId(1));
    rounds.answered(&node("a"), Family::V4, ConnectionId(1), at(5), 0, at(6));
    assert_eq!(state(&rounds, "b"), State::Pending("refused".into()));
    rounds.reach(&node("b"), Family::V4, Reach::Stranger("Cilium".to_owned()));
    assert_eq!(state(&rounds, "b"), State::Unobservable("Cilium".into()));
}

#[test]
fn writes_wait_for_those_who_are_nearly_ready_and_for_no_one_else() {
    let mut rounds = ready(&["a", "b", "c"]);
    ask(&mut rounds, 1, 0);
    rounds.reach(&node("c"), Family::V4, Reach::Silent("frozen".to_owned()));
    write(&mut rounds, 0);
    shows(&mut rounds, "a", 2, 1050);
    assert!(rounds.begin_write(Family::V4, at(1050)).is_none());
    assert_eq!(rounds.write_due(Family::V4, at(1060)), Some(at(1200)), "b may be ready soon");
    shows(&mut rounds, "b", 2, 1100);
    assert_eq!(write(&mut rounds, 1100).values.len(), 2, "c is silent, and has not shown its value");
}

#[test]
fn the_list_of_nodes_is_read_for_each_call_and_once_more_at_its_end() {
    let mut rounds = ready(&["a"]);
    assert!(!rounds.list_wanted(at(10)));
    let call = ask(&mut rounds, 1, 10);
    assert!(rounds.list_wanted(at(10)));
    rounds.nodes(&listed(&["a"]), at(11));
    assert!(!rounds.list_wanted(at(1900)) && !rounds.list_stands(call));
    assert_eq!(rounds.list_due(at(1900)), Some(at(2010)));
    assert!(rounds.list_wanted(at(2010)));
    rounds.nodes(&listed(&["a", "joined"]), at(2011));
    assert!(rounds.list_stands(call) && !rounds.list_wanted(at(9000)));
    assert_eq!(rounds.states(call).count(), 2, "who joined is awaited");
}

/// A kube-proxy that has, at any time, some prefix of the writes, and shows it; its processes start with less.
#[derive(Debug, Default)]
struct Proxy {
    /// How many writes its process has.
    has: usize,
    connection: u64,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Taken,
    Refused,
    /// The API server has it, and its answer is lost.
    Unknown,
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Ask,
    Write(Fate),
    /// Another writer, who has seen the node too.
    Other,
    Catch {
        node: usize,
        writes: usize,
    },
    Answer {
        node: usize,
    },
    Restart {
        node: usize,
        loses: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_u64..1500).prop_map(Step::Pass),
        2 => Just(Step::Ask),
        4 => prop_oneof![8 => Just(Fate::Taken), 1 => Just(Fate::Refused), 1 => Just(Fate::Unknown)].prop_map(Step::Write),
        1 => Just(Step::Other),
        4 => (0_usize..2, 1_usize..5).prop_map(|(node, writes)| Step::Catch { node, writes }),
        6 => (0_usize..2).prop_map(|node| Step::Answer { node }),
        1 => (0_usize..2, 0_usize..4).prop_map(|(node, loses)| Step::Restart { node, loses }),
    ];
    proptest::collection::vec(step, 20..160)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Every write of the API is known with its values; a node shows what its process has of them. A confirmation needs a
    /// process that has two writes from after the call.
    #[test]
    fn no_order_of_steps_confirms_what_a_process_does_not_have(steps in steps()) {
        let names = ["a", "b"].map(node);
        let mut rounds = Rounds::new(PACE);
        rounds.nodes(&listed(&["a", "b"]), at(0));
        let mut log: Vec<BTreeMap<NodeName, Generation>> =
            vec![names.iter().map(|name| (name.clone(), Generation::FIRST)).collect()];
        // When each was written: what a process that starts may miss is not older than `firstList`.
        let mut written_at = vec![0];
        let mut proxies = [Proxy { has: 1, connection: 1 }, Proxy { has: 1, connection: 1 }];
        rounds.loaded(Family::V4, &log[0], at(0));
        for name in &names {
            rounds.opened(name, Family::V4, ConnectionId(1));
        }
        let (mut now, mut calls) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Pass(millis) => now += millis,
                Step::Ask => {
                    rounds.ask(CallId(calls.len() as u64), &[Family::V4], Duration::ZERO, at(now));
                    calls.push((log.len(), rounds.newest(Family::V4)));
                }
                Step::Write(fate) => {
                    let Some(write) = rounds.begin_write(Family::V4, at(now)) else { continue };
                    if fate != Fate::Refused {
                        let mut values = log[log.len() - 1].clone();
                        values.extend(write.values);
                        log.push(values);
                        written_at.push(now);
                    }
                    if fate == Fate::Taken {
                        rounds.written(Family::V4, write.id, at(now));
                    } else {
                        rounds.write_lost(Family::V4, write.id);
                        rounds.loaded(Family::V4, &log[log.len() - 1], at(now));
                    }
                }
                Step::Other => {
                    // He advances, at his own distance from the last, nodes that show what is written.
                    if now < written_at[written_at.len() - 1] + 1000 {
                        continue;
                    }
                    let newest = log[log.len() - 1].clone();
                    let mut values = newest.clone();
                    for (name, proxy) in names.iter().zip(&proxies) {
                        if log[proxy.has - 1][name] == newest[name] {
                            values.insert(name.clone(), newest[name].next());
                        }
                    }
                    log.push(values);
                    written_at.push(now);
                    // We learn of it when our next write conflicts; here at once, or at a write.
                    if now % 2 == 0 {
                        rounds.loaded(Family::V4, &log[log.len() - 1], at(now));
                    } else if let Some(write) = rounds.begin_write(Family::V4, at(now)) {
                        for (name, proxy) in names.iter().zip(&mut proxies) {
                            proxy.has = log.len();
                            let shown = log[proxy.has - 1][name].endpoints();
                            rounds.answered(name, Family::V4, ConnectionId(proxy.connection), at(now), shown.into(), at(now));
                        }
                        rounds.write_lost(Family::V4, write.id);
                        rounds.loaded(Family::V4, &log[log.len() - 1], at(now));
                    } else {
                        rounds.loaded(Family::V4, &log[log.len() - 1], at(now));
                    }
                }
                Step::Catch { node, writes } => {
                    let proxy = &mut proxies[node];
                    proxy.has = (proxy.has + writes).min(log.len());
                }
                Step::Answer { node } => {
                    let (name, proxy) = (&names[node], &proxies[node]);
                    let shown = log[proxy.has - 1][name].endpoints();
                    let connection = ConnectionId(proxy.connection);
                    rounds.answered(name, Family::V4, connection, at(now), shown.into(), at(now));
                }
                Step::Restart { node, loses } => {
                    // It lists no older than two seconds ago.
                    let oldest = written_at.iter().filter(|written| **written + 2000 <= now).count().max(1);
                    let proxy = &mut proxies[node];
                    proxy.has = proxy.has.saturating_sub(loses).max(oldest).min(log.len());
                    rounds.closed(&names[node], Family::V4, ConnectionId(proxy.connection));
                    proxy.connection += 1;
                    rounds.opened(&names[node], Family::V4, ConnectionId(proxy.connection));
                }
            }
            for (number, (log_then, _)) in calls.iter().enumerate() {
                for (name, _, state) in rounds.states(CallId(number as u64)) {
                    if matches!(state, State::Confirmed { .. }) {
                        let has = proxies[names.iter().position(|other| other == name).expect("known")].has;
                        prop_assert!(has >= log_then + 2, "{name} has {has} writes, the call came after {log_then}");
                    }
                }
            }
        }
    }
}
