//! `Routing` against the oracle: every history of a small size, and a sample of larger ones.
//!
//! `LASTSYN_ROUTING_ORACLE=2` (or 3, 4, ...) makes the histories longer by so many writes and the samples 100 times as
//! many for each; the test's output (`--nocapture`) has the figures.

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{
    super::State,
    mixtures::{Content, Since, in_force, may_route, mixture_that_routes},
    scene::{Scene, local_service, service},
    simpler_rules::{Rule, Simpler},
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// How many writes were judged, and how.
#[derive(Debug, Default)]
struct Figures {
    histories: u64,
    writes: u64,
    relevant: u64,
    /// Relevant, though no mixture routes: what the rule costs for being simple.
    without_need: u64,
}

/// A history so far.
#[derive(Clone)]
struct History {
    scene: Scene,
    /// The rule as the design words it, over whole histories.
    worded: Simpler,
    since: Since,
    local: bool,
    told: Vec<(usize, Content)>,
}

impl History {
    fn new(slices: &[Content], local: bool) -> Self {
        let service = if local { local_service() } else { service("web") };
        let endpoints: Vec<_> = slices.iter().map(|content| content.endpoints()).collect();
        let listed: Vec<_> = NAMES.into_iter().zip(endpoints.iter().map(Vec::as_slice)).collect();
        let scene = Scene::listed_with(service, &listed);
        let since: Since = slices.iter().map(|content| vec![*content]).collect();
        let worded = Simpler::start(Rule::AsWorded, &since, local);
        let told = slices.iter().copied().enumerate().collect();
        let history = Self { scene, worded, since, local, told };
        history.check();
        history
    }

    fn write(&mut self, slice: usize, content: Content, figures: &mut Figures) {
        self.told.push((slice, content));
        let heard_of = self.scene.state().is_some();
        let gone = content == Content::EMPTY && self.since[slice].last() != Some(&content);
        let relevant =
            if gone { self.scene.remove(NAMES[slice]) } else { self.scene.write(NAMES[slice], &content.endpoints()) };
        self.since[slice].push(content);
        let routing_mixture = mixture_that_routes(&self.since, self.local);
        if heard_of {
            figures.writes += 1;
            figures.relevant += u64::from(relevant);
            figures.without_need += u64::from(relevant && routing_mixture.is_none());
            assert_eq!(relevant, self.worded.write(slice, content), "not what the words say: {:?}", self.told);
        }
        if relevant || !heard_of {
            self.since = in_force(&self.since).into_iter().map(|content| vec![content]).collect();
            self.worded = Simpler::start(Rule::AsWorded, &self.since, self.local);
        } else if self.is_withdrawn() {
            assert_eq!(routing_mixture, None, "withdrawn, though this mixture routes: {:?}", self.told);
        }
        self.check();
    }

    fn is_withdrawn(&self) -> bool {
        self.scene.state().is_some_and(|state| !state.is_routed())
    }

    /// The state is true of the slices in force.
    fn check(&self) {
        let routed = self.scene.state().is_some_and(State::is_routed);
        assert_eq!(routed, may_route(&in_force(&self.since), self.local), "{:?}", self.told);
    }
}

fn explore(history: &History, contents: &[Content], writes: u32, figures: &mut Figures) {
    if writes == 0 {
        figures.histories += 1;
        return;
    }
    for slice in 0..history.since.len() {
        for content in contents {
            let mut next = history.clone();
            next.write(slice, *content, figures);
            explore(&next, contents, writes - 1, figures);
        }
    }
}

/// Slices are alike: only lists in one order.
fn starts(contents: &[Content], slices: usize) -> Vec<Vec<Content>> {
    (0..slices)
        .fold(vec![(0, vec![])], |starts: Vec<(usize, Vec<Content>)>, _| {
            let longer = |(from, start): (usize, Vec<Content>)| {
                let with = move |(at, content): (usize, &Content)| (at, [&start[..], &[*content]].concat());
                contents.iter().enumerate().skip(from).map(with).collect::<Vec<_>>()
            };
            starts.into_iter().flat_map(longer).collect()
        })
        .into_iter()
        .map(|(_, start)| start)
        .collect()
}

fn deeper() -> u32 {
    std::env::var("LASTSYN_ROUTING_ORACLE").ok().and_then(|deeper| deeper.parse().ok()).unwrap_or(0)
}

fn exhaustive(slices: usize, peers: usize, writes: u32) {
    let contents = Content::all(peers);
    for local in [false, true] {
        let mut figures = Figures::default();
        for start in starts(&contents, slices) {
            explore(&History::new(&start, local), &contents, writes, &mut figures);
        }
        println!("{slices} slices, pod + {peers}, {writes} writes, local {local}: {figures:?}");
        assert!(figures.relevant > figures.without_need);
    }
}

#[test]
fn no_mixture_of_versions_routes_after_a_withdrawal_two_slices_one_peer() {
    exhaustive(2, 1, 2 + deeper());
}

#[test]
fn no_mixture_of_versions_routes_after_a_withdrawal_two_slices_two_peers() {
    exhaustive(2, 2, 1 + deeper());
}

#[test]
fn no_mixture_of_versions_routes_after_a_withdrawal_in_sampled_histories() {
    let contents = Content::all(2);
    let content = prop::sample::select(contents);
    // Where the pod is ready every write is relevant, so most histories start with its withdrawal.
    let start = prop::collection::vec(content.clone(), 3);
    let writes = prop::collection::vec((0..3_usize, content), 1..=4 + deeper() as usize);
    let calm = any::<[bool; 4]>();
    let cases = 8_000 * 100_u32.pow(deeper().min(2));
    let mut runner = TestRunner::new_with_rng(
        Config { cases, failure_persistence: None, ..Config::default() },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let figures = std::cell::RefCell::new(Figures::default());
    let run = runner.run(&(start, writes, calm), |(mut start, mut writes, [local, calm, ..])| {
        if calm {
            let contents = start.iter_mut().chain(writes.iter_mut().map(|(_, content)| content));
            contents
                .filter(|content| content.0[0] == Some(super::scene::READY))
                .for_each(|content| content.0[0] = None);
        }
        let mut figures = figures.borrow_mut();
        let mut history = History::new(&start, local);
        for (slice, content) in writes {
            history.write(slice, content, &mut figures);
        }
        figures.histories += 1;
        Ok(())
    });
    println!("3 slices, pod + 2, sampled: {:?}", figures.borrow());
    run.unwrap();
}
