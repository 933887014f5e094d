//! Running a case, and telling what came of it.

use std::{
    fs::OpenOptions,
    io::Write as _,
    time::{Duration, Instant},
};

use stateright::{Checker as _, Model};

use crate::{
    setting::Setting,
    words,
    world::{CONFIRMS, SOUND},
};

/// A case in words, and what is to be found of it.
pub(crate) struct Told<M: Model> {
    pub(crate) rule: String,
    pub(crate) assumes: Vec<&'static str>,
    pub(crate) world: String,
    /// The names of its properties: what always holds, and what must happen at times.
    pub(crate) sound: &'static str,
    pub(crate) confirms: &'static str,
    /// A step of a trace.
    pub(crate) step: StepInWords<M::State, M::Action>,
}

/// How a step is said: from the state before, by what, to the state after.
pub(crate) type StepInWords<State, Action> = fn(&State, Option<Action>, &State) -> String;

/// What a search found.
pub(crate) struct Found {
    /// The shortest way to a violation, one line for each step; `None` where there is none.
    pub(crate) violation: Option<Vec<String>>,
    /// Whether there was a verdict at all.
    pub(crate) confirms: bool,
}

/// Searches the whole world, breadth first, to its first violation or its end. On one thread, so that the first
/// violation is of the shortest.
pub(crate) fn search(name: &str, setting: Setting) -> Found {
    let told = Told {
        rule: setting.rule_in_words(),
        assumes: setting.assumed_in_words(),
        world: setting.world_in_words(),
        sound: SOUND,
        confirms: CONFIRMS,
        step: words::step,
    };
    run(name, setting, &told)
}

/// The same of any model.
pub(crate) fn run<M>(name: &str, model: M, told: &Told<M>) -> Found
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + Send + Sync + 'static,
    M::Action: Copy + PartialEq,
{
    #[expect(clippy::disallowed_methods, reason = "how long a search takes is for people, and decides nothing")]
    let started = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    let took = started.elapsed();
    let violation = checker.discovery(told.sound).map(|path| {
        let steps = path.into_vec();
        steps.windows(2).map(|pair| (told.step)(&pair[0].0, pair[0].1, &pair[1].0)).collect()
    });
    let found = Found { violation, confirms: checker.discovery(told.confirms).is_some() };
    let size = Size { states: checker.unique_state_count(), depth: checker.max_depth(), took };
    eprintln!("{name}: {} states, {} steps deep, {:.1} s", size.states, size.depth, took.as_secs_f64());
    record(name, told, &found, &size);
    found
}

struct Size {
    states: usize,
    depth: usize,
    took: Duration,
}

/// Adds a line to the file that `LASTSYN_MODEL_RECORDS` names, for `cargo xtask model`.
#[expect(clippy::expect_used, reason = "a record that is lost must fail its case")]
fn record<M: Model>(name: &str, told: &Told<M>, found: &Found, size: &Size) {
    let Some(path) = std::env::var_os("LASTSYN_MODEL_RECORDS") else { return };
    let line = serde_json::json!({
        "name": name,
        "rule": told.rule,
        "assumes": told.assumes,
        "world": told.world,
        "trace": found.violation,
        "confirms": found.confirms,
        "states": size.states,
        "depth": size.depth,
        "seconds": size.took.as_secs_f64(),
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file for the records");
    // One write, as other cases append at the same time.
    file.write_all(format!("{line}\n").as_bytes()).expect("a record is written");
}

/// Whether the larger worlds are to be searched.
pub(crate) fn deep() -> bool {
    std::env::var("LASTSYN_MODEL").is_ok_and(|value| value == "deep")
}
